package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/store"
)

func TestRemoveRulesRefuses(t *testing.T) {
	dir := t.TempDir()
	_, err := removeRules(t.Context(), dir)
	require.ErrorContains(t, err, "there is no store in "+dir)
	require.NoDirExists(t, filepath.Join(dir, "store"))
	s, err := store.Open(filepath.Join(dir, "store"), store.Options{})
	require.NoError(t, err)
	defer s.Close()
	_, err = removeRules(t.Context(), dir)
	require.ErrorContains(t, err, "stop the daemon first")
}
