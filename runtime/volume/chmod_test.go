package volume_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChmod(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "f", "")
	require.NoError(t, b.Chmod(t.Context(), id, "f", 0o750))
	info, err := os.Stat(filepath.Join(b.dir, "f"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o750), info.Mode())
	for _, bad := range []fs.FileMode{0o1777, 0o4755, fs.ModeSetuid | 0o755, 1 << 20} {
		require.Equal(t, "invalid_request", code(b.Chmod(t.Context(), id, "f", bad)))
	}
	require.EqualError(t, b.Chmod(t.Context(), id, "g", 0o600), "Path not found: g")
}
