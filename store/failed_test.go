package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFailedCommit: when Badger cannot commit, the store can never be written again, and reports
// it. Another start has every update that was acknowledged, and is written.
func TestFailedCommit(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "00002.mem"), make([]byte, 100), 0o600), "Badger cannot begin its next log")
	var kept []string
	for i := 0; err == nil; i++ {
		select {
		case <-s.Failed():
			t.Fatal("it has not failed yet")
		default:
		}
		id := fmt.Sprintf("c%03d", i)
		if err = createBig(s, id, noise()); err == nil {
			kept = append(kept, id)
		}
	}
	<-s.Failed()
	require.ErrorIs(t, err, ErrFailed)
	require.NotErrorIs(t, err, ErrDiskFull)
	require.ErrorContains(t, s.Err(), "00002.mem")
	require.Equal(t, s.Err(), s.Writable())
	require.ErrorIs(t, s.MustUpdate(createOp("more", 1)), ErrFailed)
	require.EqualValues(t, len(kept), s.Revision())
	require.NoError(t, s.Close())

	s = openIn(t, dir)
	require.Equal(t, kept, ids(t, s))
	require.NoError(t, create(s, "more"))
}
