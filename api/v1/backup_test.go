package v1

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFirstSkippedFits: a NUL takes 6 bytes in JSON.
func TestFirstSkippedFits(t *testing.T) {
	list := make([]Skipped, 30)
	require.Len(t, FirstSkipped(list, 20, 1000), 20)
	require.Len(t, FirstSkipped(list, 40, 1000), 30)
	for i := range list {
		list[i].Path = string(make([]byte, 4096))
	}
	require.Len(t, FirstSkipped(list, 20, MaxSkippedBytes), MaxSkippedBytes/(6*4096+2))
	require.Empty(t, FirstSkipped(list, 20, ListedSkippedBytes))
}
