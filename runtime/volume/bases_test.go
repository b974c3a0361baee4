package volume_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

// TestBases: a volume lies in the directory that In names, with its temporary entries; nothing of it is in another.
func TestBases(t *testing.T) {
	dir := t.TempDir()
	base, fast := filepath.Join(dir, "volumes"), filepath.Join(dir, "fast")
	opt := options()
	opt.Bases, opt.In = []string{fast}, func(id string) string { return map[string]string{"in-fast": fast + "/"}[id] }
	m, err := volume.New(base, opt)
	require.NoError(t, err)
	require.ErrorIs(t, m.Ensure("in-fast"), v1.ErrDirectoryMissing, "berth does not create what others mount")
	require.NoDirExists(t, fast)

	require.NoError(t, os.Mkdir(fast, 0o700))
	require.NoError(t, m.Ensure("in-fast"))
	require.NoError(t, m.Ensure("in-base"))
	require.Equal(t, filepath.Join(fast, "in-fast"), m.Path("in-fast"))
	for _, id := range []string{"in-fast", "in-base"} {
		_, err := m.Write(t.Context(), id, "f", strings.NewReader("text"), nil)
		require.NoError(t, err)
		require.FileExists(t, filepath.Join(m.Path(id), "f"))
		require.NoError(t, m.Check(id))
	}
	require.NoDirExists(t, filepath.Join(base, "in-fast"))
	require.NoDirExists(t, filepath.Join(base, ".tmp", "in-fast"))
	present := m.Present()
	require.True(t, present["in-fast"] && present["in-base"])

	// A restore was killed between its two renames.
	temps := filepath.Join(fast, ".tmp", "in-fast")
	require.NoError(t, os.MkdirAll(temps, 0o700))
	require.NoError(t, os.Rename(m.Path("in-fast"), filepath.Join(temps, "restored")))
	m, err = volume.New(base, opt)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(fast, "in-fast", "f"))

	require.NoError(t, m.Remove(t.Context(), "in-fast"))
	require.NoDirExists(t, filepath.Join(fast, "in-fast"))
	require.FileExists(t, filepath.Join(base, "in-base", "f"))
}
