package volume_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
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
	_, err := b.Snapshots().Write(t.Context(), id, io.Discard, v1.SnapshotOptions{})
	require.ErrorContains(t, err, "larger than its size limit")
}
