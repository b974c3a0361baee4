package kv

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBatchIsBounded(t *testing.T) {
	db := openIn(t, "", Options{})
	b := db.Begin()
	defer b.Discard()
	require.True(t, b.Empty())
	part := func(key string) map[string][]byte {
		return map[string][]byte{key: []byte(strings.Repeat("x", 700<<10))}
	}
	require.ErrorIs(t, b.Add(map[string][]byte{"a": make([]byte, maxValue+1)}), ErrTooBig)
	require.ErrorIs(t, b.Add(map[string][]byte{strings.Repeat("a", maxKey+1): nil}), ErrTooBig)
	twice := part("a")
	twice["b"] = twice["a"]
	require.ErrorIs(t, b.Add(twice), ErrTooBig)
	require.True(t, b.Empty())
	require.NoError(t, b.Add(part("a")))
	require.ErrorIs(t, b.Add(part("b")), ErrBatchFull)
	require.NoError(t, b.Commit())
	require.Equal(t, []string{"a"}, keys(t, db, ""))
}
