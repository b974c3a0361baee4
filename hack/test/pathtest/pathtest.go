package pathtest

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Texts returns paths that every field refuses.
func Texts() []string {
	return append([]string{
		"", "..", "../x", "a/../b", "a/..", "dir/../../outside/secret", "./..", "/", "/etc/passwd", "//x", "a\x00b", "\x00",
		strings.Repeat("n", 256), "dir/" + strings.Repeat("n", 256), strings.Repeat("a/", 2049),
	}, Names()...)
}

// Names returns those of Texts that are names of Linux: SFTP takes them as they are.
func Names() []string {
	return []string{`\x`, `\\host\share`, `C:`, `C:\x`, "c:/x", "z:x", "a\nb", "a\tb", "\x7f", "a\u0085b", `a\x41`, `a\x2fb`, `\x2e\x2e/x`,
		`a\x00`}
}

// Dots returns paths that only the fields of the interface refuse.
func Dots() []string { return []string{"..a", "a..b"} }

// InvalidUTF8 returns paths that break the path rules and cannot be in JSON.
func InvalidUTF8() []string { return []string{"\xff\xfe", "a/\xc0\xae\xc0\xae/b"} }

// Plant creates the file dir/file in the volume whose directory is volume, files beside
// the volumes, and links that try to lead to them. It returns the paths through the
// links, and those whose last component is a link.
func Plant(t testing.TB, volume string) (through, last []string) {
	t.Helper()
	const rel = "../../outside"
	outside := filepath.Join(volume, rel)
	for name, content := range map[string]string{outside + "/secret": "secret", outside + "/folder/secret": "secret",
		volume + "/dir/file": "mine"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(content), 0o644))
	}
	links := map[string]string{
		"abs-file": outside + "/secret", "abs-folder": outside,
		"rel-file": rel + "/secret", "rel-folder": rel,
		"chain": "chain2", "chain2": "dir/chain3", "dir/chain3": "../rel-folder",
		"loop": "loop2", "loop2": "loop", "self": "self",
		"new-out": rel + "/new", "up": "..", "dir/up": "../..", "root": "/", "proc": "/proc/self/root",
		"dots": "dir/./../../../outside", "etc": "/etc",
	}
	for _, name := range slices.Sorted(maps.Keys(links)) {
		require.NoError(t, os.Symlink(links[name], filepath.Join(volume, name)))
		last = append(last, name)
		if name != "abs-file" && name != "rel-file" && name != "new-out" {
			through = append(through, name+"/secret", name+"/folder/secret", name+"/new")
		}
	}
	return append(through, "up/outside/secret", "up/volumes", "dir/up/outside/folder", "root/etc/passwd", "proc/etc/passwd",
		"etc/passwd"), last
}
