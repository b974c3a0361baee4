package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/store"
)

func TestAStoreThatCannotBeWrittenIsLoggedOnce(t *testing.T) {
	s, err := store.Open("", store.Options{})
	require.NoError(t, err)
	var log bytes.Buffer
	d := &daemon{store: s, log: slog.New(slog.NewTextHandler(&log, nil))}
	require.NotContains(t, d.unready(), "store: not writable")
	require.Empty(t, log.String())
	require.NoError(t, s.Close())
	for range 3 { // GET /readyz needs no token
		require.Contains(t, d.unready(), "store: not writable")
	}
	require.Equal(t, 1, strings.Count(log.String(), "cannot be written"))
}
