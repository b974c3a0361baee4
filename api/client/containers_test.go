package client

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestContainerCanBeApplied sends a container as it was received.
func TestContainerCanBeApplied(t *testing.T) {
	const got = `{"internal_id":"mc","image":"a:1","volume_id":"v","tty":false,"message":null,"state":"exit","exit_code":3,"started_at":null,"power":"stopped","install_timeout":"1h0m0s"}`
	c, requests := serve(t, 200, got)
	mc, err := c.Containers().Get(t.Context(), "mc")
	require.NoError(t, err)
	require.Equal(t, 3, *mc.ExitCode)
	_, err = c.Containers().Apply(t.Context(), mc.ContainerSpec, ApplyOptions{})
	require.NoError(t, err)
	_, body, _ := strings.Cut((*requests)[1], "{")
	require.True(t, json.Valid([]byte("{"+body)))
	require.JSONEq(t, `{"internal_id":"mc","image":"a:1","volume_id":"v","tty":false,"power":"stopped","install_timeout":"1h0m0s"}`, "{"+body)
}
