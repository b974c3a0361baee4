package v1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestIsName(t *testing.T) {
	for _, text := range []string{"", "alice", "Zoë Müller <z@example.org>", "日本", strings.Repeat("é", 128)} {
		require.True(t, v1.IsName(text), text)
	}
	for _, text := range []string{"a\nb", "a\x00", "\x1b[31m", "\xff", "a\u202eb", "a\u00a0b", strings.Repeat("é", 129)} {
		require.False(t, v1.IsName(text), text)
	}
}

func TestActorString(t *testing.T) {
	require.Equal(t, "controller", v1.Controller().String())
	require.Equal(t, "0f1e", v1.Actor{TokenID: "0f1e", Via: v1.ViaHTTP}.String())
	require.Equal(t, "panel on behalf of alice", v1.Actor{TokenID: "0f1e", Name: "panel", Via: v1.ViaHTTP, OnBehalfOf: "alice"}.String())
}
