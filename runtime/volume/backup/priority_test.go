package backup

import (
	"errors"
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
