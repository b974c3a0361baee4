package sftp

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	client "github.com/pkg/sftp"
	"github.com/stretchr/testify/require"

	"berth/api/auth"
)

var hostileNames = []string{
	`\x`, `\\host\share`, `C:`, `C:\x`, "c:/x", "z:x", "a\x00b", "\x00", "a\nb", "a\tb", "\x7f", "a\u0085b",
	strings.Repeat("n", 256), "dir/" + strings.Repeat("n", 256), strings.Repeat("a/", 2049),
	".berth-tmp-" + strings.Repeat("0", 32), "./.berth-tmp-" + strings.Repeat("a", 32) + "/x", "\xff\xfe", "a/\xc0\xae\xc0\xae/b",
	"etc/passwd", "etc/new", "up/x", "up/volumes", "chain/outside/secret", "loop/x",
}

var resolvedNames = []string{
	"../x", "a/../../b", "dir/../../outside/secret", "/etc/passwd", "//x", "../../../../../../etc/passwd", "/../../etc/shadow",
	"dir/../../../../../../../../tmp/x", "..a", "a..b", "./../x", "/proc/self/root/etc/passwd",
}

func TestHostilePaths(t *testing.T) {
	h := newHarness(t)
	h.write("dir/file", "mine")
	for name, target := range map[string]string{"etc": "/etc", "up": "../..", "chain": "dir/chain", "dir/chain": "../up", "loop": "loop"} {
		require.NoError(t, os.Symlink(target, filepath.Join(h.dir, name)))
	}
	outside := filepath.Join(h.dir, "../../outside")
	require.NoError(t, os.Mkdir(outside, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	before := around(t, filepath.Join(h.dir, "../.."))
	token := h.mint(auth.Grant{})
	c := h.login(h.volume, token)
	all := slices.Collect(func(yield func(string) bool) {
		for name := range changes {
			if !yield(name) {
				return
			}
		}
	})
	for _, path := range hostileNames {
		for _, name := range all {
			require.Error(t, changes[name](c, path), "%s %.60q", name, path)
		}
		for name, read := range reads {
			require.Error(t, read(c, path), "%s %.60q", name, path)
		}
		require.Error(t, c.Rename("dir/file", path), "%.60q", path)
		require.Error(t, c.PosixRename("dir/file", path), "%.60q", path)
	}
	require.Equal(t, before, around(t, filepath.Join(h.dir, "../..")))
	for _, path := range resolvedNames {
		for name, read := range reads {
			err := read(c, path)
			require.Error(t, err, "%s %s", name, path)
			require.True(t, errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission), "%s %s: %v", name, path, err)
		}
	}
	require.NoError(t, c.Mkdir("goes on"))
}

var reads = map[string]func(c *client.Client, path string) error{
	"open":    func(c *client.Client, path string) error { return closed(c.Open(path)) },
	"stat":    func(c *client.Client, path string) error { _, err := c.Stat(path); return err },
	"list":    func(c *client.Client, path string) error { _, err := c.ReadDir(path); return err },
	"statvfs": func(c *client.Client, path string) error { _, err := c.StatVFS(path); return err },
	"link":    func(c *client.Client, path string) error { _, err := c.ReadLink(path); return err },
}

func around(t *testing.T, top string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(top, func(p string, d os.DirEntry, err error) error {
		if err != nil || strings.Contains(p, "/store") {
			return err
		}
		info, err := d.Info()
		if err == nil && d.Type().IsRegular() {
			var data []byte
			data, err = os.ReadFile(p)
			all[p] = string(data)
		}
		all[p] += " " + info.Mode().String()
		return err
	}))
	return all
}
