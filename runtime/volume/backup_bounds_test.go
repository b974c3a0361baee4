package volume_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// TestBackupOfGrownVolume: a volume far above its limit has no backup; the slack is for files
// that are replaced meanwhile.
func TestBackupOfGrownVolume(t *testing.T) {
	b := newBox(t, options())
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, "large"), bytes.Repeat([]byte("x"), 70<<20), 0o600))
	takeBackup(t, b)
	b.SetLimit(id, 8<<20, v1.Usage{})
	takeBackup(t, b)
	b.SetLimit(id, 1<<20, v1.Usage{})
	_, err := b.Snapshot(t.Context(), id, io.Discard, v1.SnapshotOptions{})
	require.ErrorContains(t, err, "larger than its size limit")
}

// TestBackupOfHoles: a sparse file takes the time of its size, and the progress counts its holes.
func TestBackupOfHoles(t *testing.T) {
	b := newBox(t, options())
	sparse := func(size int64) {
		require.NoError(t, os.Truncate(create(t, b.dir, "sparse"), size))
	}
	b.put(t, "data", strings.Repeat("x", 1<<20))
	sparse(1 << 40)
	_, err := b.Snapshot(t.Context(), id, io.Discard, v1.SnapshotOptions{})
	require.ErrorIs(t, err, &v1.Error{Code: v1.SizeLimit})
	require.ErrorContains(t, err, "more than 68719476736 bytes of holes, too many for a backup: leave out the sparse file sparse (ignore)")
	sparse(64 << 20)
	early := false
	_, err = b.Snapshot(t.Context(), id, io.Discard, v1.SnapshotOptions{Progress: func(bytes, total int64) {
		early = early || bytes > 2<<20 && bytes < 32<<20 && total > 60<<20
	}})
	require.NoError(t, err)
	require.True(t, early, "the total is known before the end")
}
