package kv

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommitsAreSynced(t *testing.T) {
	require.True(t, openIn(t, t.TempDir(), Options{}).badger.Opts().SyncWrites)
}
