package backup

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestLowPriority(t *testing.T) {
	priority := func() int {
		raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		require.NoError(t, err)
		return 20 - raw // as the system call returns it
	}
	before := priority()
	failed := errors.New("failed")
	require.ErrorIs(t, withLowPriority(func() error {
		if got := priority(); got != nice {
			t.Errorf("priority %d", got)
		}
		return failed
	}), failed)
	require.Equal(t, before, priority(), "the caller keeps its own")
}

// TestPanicOfAWriter: a panic is an error with its place, and ends neither berth nor another job.
func TestPanicOfAWriter(t *testing.T) {
	err := withLowPriority(func() error {
		var none *os.File
		_ = none.Name()
		panic("not reached")
	})
	require.ErrorContains(t, err, "nil pointer dereference at berth/runtime/volume/backup.TestPanicOfAWriter")
	require.NotContains(t, err.Error(), "\n")
}
