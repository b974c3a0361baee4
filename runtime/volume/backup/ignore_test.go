package backup_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"berth/runtime/volume/backup"
)

// ignorable are the entries that patterns are tried on; those with a slash are folders.
var ignorable = []string{"a.log", "d/", "d/a.log", "cache/", "cache/x", "x/", "x/cache/", "x/cache/y", "cachefile", "keep.log",
	"d/keep.log", "a b", "#h", "!n", "foo/", "foo/bar/", "foo/bar/baz", "foo/x", "logs/", "logs/debug.log", "logs/monday/",
	"logs/monday/debug.log", "trailing ", "x[1]", "ünï", `a\b`, "deep/", "deep/er/", "deep/er/f.tmp", "foo.", "dir.log/", "dir.log/x", "*star"}

// checkIgnore compares what patterns leave out with git. A question mark is one character, and for git
// one byte.
func checkIgnore(t require.TestingT, dir string, patterns []string) {
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".git/info/exclude"), []byte(strings.Join(patterns, "\n")+"\n"), 0o600))
	git := exec.Command("git", "-C", dir, "check-ignore", "--no-index", "-z", "--stdin")
	git.Stdin = strings.NewReader(strings.ReplaceAll(strings.Join(ignorable, "\x00"), "/\x00", "\x00"))
	out, _ := git.Output() // exit code 1 means that nothing is ignored
	want := strings.Split(string(out), "\x00")
	left := map[string]bool{}
	for _, p := range ignorable {
		name, isFolder := strings.CutSuffix(p, "/")
		left[name] = left[filepath.Dir(name)] || backup.Matches(patterns, name, isFolder)
		switch {
		case name == "ünï" && strings.Contains(strings.Join(patterns, ""), "?"):
		case left[name]:
			require.Contains(t, want, name, "%q leaves out %q", patterns, p)
		default:
			require.NotContains(t, want, name, "%q keeps %q", patterns, p)
		}
	}
}

// repository creates a git repository with the entries.
func repository(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, exec.Command("git", "init", "-q", dir).Run())
	for _, p := range ignorable {
		if strings.HasSuffix(p, "/") {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, p), 0o755))
			continue
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, p), nil, 0o600))
	}
	return dir
}

func TestIgnoreAsGit(t *testing.T) {
	dir := repository(t)
	for _, patterns := range [][]string{
		{"*.log"}, {"cache/"}, {"/cache"}, {"*.log", "!keep.log"}, {"!keep.log", "*.log"}, {"foo/*", "!foo/bar"},
		{"foo/*", "!foo/bar/", "foo/bar/*", "!foo/bar/baz"}, {"foo/", "!foo/bar"}, {"logs/**/debug.log"}, {"**/cache"}, {"cache/**"},
		{`\#h`}, {`\!n`}, {"# c", "  ", ""}, {"a b"}, {`trailing\ `}, {"trailing "}, {`x\[1\]`}, {"x[[]1]"}, {"[a-c].log"},
		{"[!a].log"}, {"?.log"}, {"*"}, {"*", "!*/", "!*.log"}, {"/*", "!/foo", "/foo/*", "!/foo/bar"}, {"ü*"}, {"deep/**/f.tmp"},
		{"**/er/**"}, {"foo."}, {`a\\b`}, {"*.log/"}, {`\*star`}, {"d/*.log"}, {"**"}, {"/"}, {"!a.log"}, {"foo/**/baz"},
		{"f*o/"}, {"*.log ", "!d/"}, {"foo/bar"}, {"(x)"}, {"a.+"}, {"$x"}, {"a{b}"}, {"a["}, {"x[^1]1]"}, {`un\`}, {"foo/b*"},
		{"**/b*"}, {"foo**"}, {"*/x"}, {"/**/x"}, {`\foo`}, {`d\/a.log`}, {"a.log\r"},
	} {
		checkIgnore(t, dir, patterns)
	}
}

// afterText is asterisks behind other characters. Git compares those before the first
// asterisk apart, and then takes a**/b for a followed by **/b: it matches axb, against its
// own documentation. No test pattern has more than one asterisk there.
var afterText = regexp.MustCompile(`([^/!*])\*\*+`)

// TestIgnoreRandomPatterns compares patterns of the usual parts with git.
func TestIgnoreRandomPatterns(t *testing.T) {
	dir := repository(t)
	part := rapid.SampledFrom([]string{"a", "foo", "bar", "*", "**", ".log", "?", "cache", "x", "/", "/", "d", "[a-f]", "logs", "debug"})
	pattern := rapid.Custom(func(t *rapid.T) string {
		parts := strings.Join(rapid.SliceOfN(part, 1, 5).Draw(t, "parts"), "")
		return rapid.SampledFrom([]string{"", "", "!", "/"}).Draw(t, "begin") + afterText.ReplaceAllString(parts, "$1*")
	})
	rapid.Check(t, func(rt *rapid.T) {
		checkIgnore(rt, dir, rapid.SliceOfN(pattern, 1, 4).Draw(rt, "patterns"))
	})
}

func TestIgnoreCharacters(t *testing.T) {
	require.True(t, backup.Matches([]string{"???"}, "ünï", false))
	require.False(t, backup.Matches([]string{"?????"}, "ünï", false))
}

// TestIgnoreCosts: no pattern takes exponential time, which would not end.
func TestIgnoreCosts(t *testing.T) {
	for _, p := range []string{strings.Repeat("*a", 400) + "b", strings.Repeat("**/", 300) + "b", strings.Repeat("?*", 400) + "b", strings.Repeat("*/", 400) + "b"} {
		for _, name := range []string{strings.Repeat("a", 255), strings.Repeat("a/", 2000) + "a"} {
			require.False(t, backup.Matches([]string{p}, name, false))
		}
	}
}
