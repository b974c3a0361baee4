package node_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// folder returns the folder of alpha's volume on the host, which its game can change in any way.
func (w *world) folder(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(w.berth.Data, "*", w.berth.Container(t, alpha).VolumeID))
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

// TestHostileIgnoreFiles: whatever a server has as the file with what a backup leaves out, the backup is made.
func TestHostileIgnoreFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	file := filepath.Join(w.folder(t), ".pelicanignore")
	text := func(content string) func() error {
		return func() error { return os.WriteFile(file, []byte(content), 0o600) }
	}
	n := 0
	for name, put := range map[string]func() error{
		"long line": text("*.log\n" + strings.Repeat("x", 1025) + "\n"), "bytes": text("*.log\n\xff\xfe\n"), "many bytes": text("*.log\n" + strings.Repeat("\xff/", 500) + "\n"), "zeros": text("*.log\n\x00\x00\n"),
		"returns": text("*.log\nx\ry\n"), "much": text("*.log\n" + strings.Repeat(strings.Repeat("y", 1000)+"\n", 30)), "no pattern": text("*.log\n[\n[a-\n\\\n!\n***/***\n{a,b\n"),
		"pipe": func() error { return syscall.Mkfifo(file, 0o600) }, "outside": func() error { return os.Symlink("/etc/passwd", file) },
		"loop": func() error { return os.Symlink(".pelicanignore", file) }, "folder": func() error { return os.Mkdir(file, 0o700) },
	} {
		n++
		require.NoError(t, os.RemoveAll(file))
		require.NoError(t, put())
		a := w.Do(t, "POST", atAlpha+"/backup", map[string]string{"adapter": "wings", "uuid": backupUUID(n), "ignore": ""})
		require.Equal(t, 202, a.Status, name+": "+a.Body)
		require.Contains(t, w.panel.Await(t, "POST /backups/"+backupUUID(n), 1).Body, `"successful":true`, name)
	}
}
