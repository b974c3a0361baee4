package keeper

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestFolder requires that containers of any user can execute the copy, which is in no volume's
// folder, and that a version stays when the next one is copied.
func TestFolder(t *testing.T) {
	old := unix.Umask(0o077)
	t.Cleanup(func() { unix.Umask(old) })
	volumes, program := t.TempDir(), filepath.Join(t.TempDir(), "berth-keeper")
	folders := map[string]bool{}
	for _, version := range []string{"1", "2"} {
		require.NoError(t, os.WriteFile(program, []byte(version), 0o700))
		folder, err := new(Keeper).Folder(program, volumes)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(folder, "."), "no volume has such a name")
		folders[folder] = true
		for _, path := range []string{folder, filepath.Join(folder, "keeper")} {
			info, err := os.Stat(filepath.Join(volumes, path))
			require.NoError(t, err)
			require.EqualValues(t, 0o755, info.Mode().Perm(), path)
		}
	}
	require.Len(t, folders, 2)
	_, err := new(Keeper).Folder("/none", volumes)
	require.ErrorContains(t, err, "install berth-keeper beside berth")
}
