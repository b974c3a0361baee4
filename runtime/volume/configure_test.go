package volume_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime/volume/configfile"
)

func TestConfigure(t *testing.T) {
	require.ElementsMatch(t, v1.ConfigFormats(), configfile.Formats())
	require.Equal(t, v1.MaxConfigFile, configfile.MaxSize)
	b := newBox(t, options())
	port := func(path string) v1.ConfigFile {
		return v1.ConfigFile{Path: path, Format: "properties", Set: map[string]string{"server-port": "25565"}}
	}
	configure := func(c v1.ConfigFile) error {
		return b.Configure(t.Context(), id, []v1.ConfigFile{c}, nil)[0]
	}

	require.NoError(t, configure(port("new/deep/server.properties")))
	made := filepath.Join(b.dir, "new/deep/server.properties")
	require.Equal(t, "server-port=25565\n", b.get(t, "new/deep/server.properties"))

	require.NoError(t, os.WriteFile(made, []byte("# mine\nserver-port=1\n"), 0o640))
	require.NoError(t, os.Chmod(made, 0o640))
	require.NoError(t, os.Chown(made, 1234, 1235))
	require.NoError(t, configure(port("new/deep/server.properties")))
	require.Equal(t, "# mine\nserver-port=25565\n", b.get(t, "new/deep/server.properties"))
	info, err := os.Stat(made)
	require.NoError(t, err)
	st := info.Sys().(*syscall.Stat_t)
	require.Equal(t, []any{os.FileMode(0o640), uint32(1234), uint32(1235)}, []any{info.Mode(), st.Uid, st.Gid}, "the server can still read and change it")
	require.NoError(t, configure(port("new/deep/server.properties")))
	again, err := os.Stat(made)
	require.NoError(t, err)
	require.True(t, os.SameFile(info, again), "a second application writes nothing")

	outside := filepath.Join(b.outside, "config")
	require.NoError(t, os.WriteFile(outside, []byte("secret=1\n"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(b.dir, "out")))
	require.NoError(t, os.Symlink("new/deep/server.properties", filepath.Join(b.dir, "in")))
	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(b.dir, "folder")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(b.dir, "fifo"), 0o600))
	require.NoError(t, os.Truncate(create(t, b.dir, "huge"), 1<<30))
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, "full"), []byte(strings.Repeat("x", configfile.MaxSize)), 0o600))
	require.NoError(t, os.Truncate(create(t, b.dir, "zeros"), 1<<10))
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, "bad"), []byte("a=\\u00x\n"), 0o600))
	for path, text := range map[string]string{
		"out": "a link", "in": "a link", "folder/config": "path traversal", "fifo": "not a file", "new": "not a file", "huge": "512 KiB", "full": "512 KiB", "zeros": "NUL", "bad": "hexadecimal",
		"../x": "path traversal", "/etc/passwd": "path traversal", ".": "path traversal", "bad/x": "exists",
	} {
		err := configure(port(path))
		require.ErrorContains(t, err, text, path)
		var known *v1.Error
		require.ErrorAs(t, err, &known, path)
		require.NotContains(t, err.Error(), b.dir)
	}
	kept, err := os.ReadFile(outside)
	require.NoError(t, err)
	require.Equal(t, "secret=1\n", string(kept))
	require.Equal(t, "a=\\u00x\n", b.get(t, "bad"))
	names, err := os.ReadDir(b.dir)
	require.NoError(t, err)
	for _, name := range names {
		require.False(t, strings.HasPrefix(name.Name(), ".berth"))
	}
}

// TestConfigureIsBounded: the files of one start have a size in all, and a stored bomb of variables
// stops none of the others.
func TestConfigureIsBounded(t *testing.T) {
	b := newBox(t, options())
	var files []v1.ConfigFile
	for i := range 13 {
		name := fmt.Sprint("f", i)
		require.NoError(t, os.WriteFile(filepath.Join(b.dir, name), []byte(strings.Repeat("#\n", 200<<10)), 0o600))
		files = append(files, v1.ConfigFile{Path: name, Format: "ini", Set: map[string]string{"a": "b"}})
	}
	files[1].Set = map[string]string{"a": strings.Repeat("${A}", 16_000)}
	errs := b.Configure(t.Context(), id, files, map[string]string{"A": strings.Repeat("x", 120_000)})
	require.EqualError(t, errs[1], "a: must be at most 65536 bytes with its variables replaced")
	for i, err := range errs {
		switch {
		case i > 10:
			require.ErrorContains(t, err, "at most that in all", i)
		case i != 1:
			require.NoError(t, err, i)
			require.Contains(t, b.get(t, files[i].Path), "a=b")
		}
	}
}

// create creates an empty file and returns its path.
func create(t *testing.T, dir, name string) string {
	t.Helper()
	p := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(p, nil, 0o600))
	return p
}
