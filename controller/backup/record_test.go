package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFailureText: a client reads what failed, without paths of the host.
func TestFailureText(t *testing.T) {
	for want, err := range map[string]error{
		"the directory cannot be written: mkdir: not a directory": fmt.Errorf("the directory cannot be written: %w", &fs.PathError{Op: "mkdir", Path: "/srv/backups", Err: syscall.ENOTDIR}),
		"rename: permission denied":                               &os.LinkError{Op: "rename", Old: "/srv/a", New: "/srv/b", Err: syscall.EACCES},
		"mkdir: not a directory": errors.Join(&fs.PathError{Op: "mkdir", Path: "/srv/backups", Err: syscall.ENOTDIR},
			&fs.PathError{Op: "open", Path: "/srv/backups", Err: syscall.ENOTDIR}),
		"No space is left on the host": fmt.Errorf("write: %w", syscall.ENOSPC),
		"the target … is gone":         fmt.Errorf("the target /srv/backups is gone"),
	} {
		require.Equal(t, want, failureText(err))
	}
}
