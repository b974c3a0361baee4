package sftp

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	client "github.com/pkg/sftp"
	"github.com/stretchr/testify/require"

	"berth/api/auth"
	"berth/hack/test/pathtest"
)

// resolved are the paths of the table that are paths of the volume for SFTP, which resolves .., takes
// the root of the volume for that of the host, and takes names as they are.
var resolved = slices.Concat([]string{
	"", "..", "../x", "a/../b", "a/..", "dir/../../outside/secret", "./..", "/", "/etc/passwd", "//x",
	"/../../etc/shadow", "../../../../../../etc/passwd", "/proc/self/root/etc/passwd",
}, pathtest.Dots(), pathtest.Names(), pathtest.InvalidUTF8())

// TestHostilePaths tries every path of the table that the tests of HTTP use with every
// request. What leads out of the volume is refused and changes nothing; what SFTP
// resolves to a path of the volume changes nothing outside.
func TestHostilePaths(t *testing.T) {
	h := newHarness(t)
	through, last := pathtest.Plant(t, h.dir)
	texts := slices.Concat(pathtest.Texts(), pathtest.Dots(), pathtest.InvalidUTF8(), []string{"/../../etc/shadow", "../../../../../../etc/passwd", "/proc/self/root/etc/passwd"})
	var hostile, inside []string
	for _, name := range append(texts, through...) {
		if slices.Contains(resolved, name) {
			inside = append(inside, name)
		} else {
			hostile = append(hostile, name)
		}
	}
	top := filepath.Join(h.dir, "../..")
	before := around(t, top)
	c := h.login(h.volume, h.mint(auth.Grant{}))
	all := maps.Clone(reads)
	maps.Copy(all, changes)
	maps.Copy(all, pairs)
	for _, name := range hostile {
		for verb, try := range all {
			require.Error(t, try(c, name), "%s %.60q", verb, name)
		}
	}
	require.Equal(t, before, around(t, top))
	all["symlink to"] = func(c *client.Client, path string) error { return c.Symlink(path, "link") } // a link may lead anywhere: it is not followed
	for _, name := range slices.Concat(inside, last, hostile) {
		for verb, try := range all {
			if err := try(c, name); err != nil {
				require.NotContains(t, err.Error(), h.dir, "%s %.60q", verb, name)
			}
		}
	}
	keep := func(files map[string]string) map[string]string {
		maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasPrefix(name, h.dir) })
		return files
	}
	require.Equal(t, keep(before), keep(around(t, top)))
	require.NoError(t, c.Mkdir("goes on"))
	t.Logf("%d paths, %d requests of each", len(hostile)+len(inside)+len(last), len(all))
}

// pairs are the requests with two paths, whose other one is valid, and the removal of
// any file.
var pairs = map[string]func(c *client.Client, path string) error{
	"rename to":   func(c *client.Client, path string) error { return c.Rename("dir/file", path) },
	"posix to":    func(c *client.Client, path string) error { return c.PosixRename("dir/file", path) },
	"hardlink":    func(c *client.Client, path string) error { return c.Link("dir/file", path) },
	"hardlink to": func(c *client.Client, path string) error { return c.Link(path, "hard") },
	"remove":      func(c *client.Client, path string) error { return c.Remove(path) },
}

var reads = map[string]func(c *client.Client, path string) error{
	"open": func(c *client.Client, path string) error {
		f, err := c.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if data, _ := io.ReadAll(f); strings.Contains(string(data), "secret") {
			panic("the content of a file outside was read through " + path)
		}
		return nil
	},
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
