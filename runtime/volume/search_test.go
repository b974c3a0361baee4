package volume_test

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

func TestSearch(t *testing.T) {
	b := newBox(t, volume.Options{UID: -1, GID: -1, Limits: volume.Limits{SearchResults: 3}})
	for _, name := range []string{"a/Latest.log", "a/b/latest.log.gz", "c/other", "logs/x"} {
		b.put(t, name, "12")
	}
	found := func(p, query string) []v1.FoundFile {
		list, err := b.Search(t.Context(), id, p, query)
		require.NoError(t, err)
		return list.Files
	}
	require.Equal(t, []v1.FoundFile{{Path: "a/Latest.log", Type: "file", Size: 2}, {Path: "a/b/latest.log.gz", Type: "file", Size: 2}}, found(".", "LATEST"))
	require.Equal(t, []v1.FoundFile{{Path: "a/Latest.log", Type: "file", Size: 2}}, found("a", "*.log"))
	require.Equal(t, []v1.FoundFile{{Path: "a/b/latest.log.gz", Type: "file", Size: 2}}, found("a/b", "log"))
	require.Equal(t, []v1.FoundFile{{Path: "logs", Type: "directory", Size: 0}}, found(".", "logs"))
	require.Len(t, found(".", "*"), 3, "bounded")
	require.Empty(t, found(".", "nothing"))
	_, err := b.Search(t.Context(), id, ".", "")
	require.Equal(t, "invalid_request", code(err))
	_, err = b.Search(t.Context(), id, "none", "x")
	require.EqualError(t, err, "Path not found: none")
}

// TestSearchOfComposedNames: macOS decomposes the names of the files that it uploads.
func TestSearchOfComposedNames(t *testing.T) {
	b := newBox(t, options())
	const composed, decomposed = "caf\u00e9.txt", "cafe\u0301.txt"
	b.put(t, "a/"+composed, "")
	b.put(t, "b/"+decomposed, "")
	for _, query := range []string{composed, decomposed, "CAF\u00c9", "cafe\u0301*"} {
		got, err := b.Search(t.Context(), id, ".", query)
		require.NoError(t, err)
		require.Equal(t, []v1.FoundFile{{Path: "a/" + composed, Type: "file"}, {Path: "b/" + decomposed, Type: "file"}}, got.Files, query)
	}
}

// TestSearchIsBounded checks the bounds of entries, results and time.
func TestSearchIsBounded(t *testing.T) {
	b := newBox(t, options())
	for i := range 600 {
		b.put(t, strconv.Itoa(i), "")
	}
	for _, c := range []struct {
		limits volume.Limits
		most   int
		cut    bool
	}{
		{volume.Limits{}, 600, false},
		{volume.Limits{SearchResults: 600}, 600, false},
		{volume.Limits{SearchResults: 599}, 599, true},
		{volume.Limits{SearchEntries: 100}, 100, true},
		{volume.Limits{SearchTime: 1}, 255, true},
	} {
		opt := options()
		opt.Limits = c.limits
		found, err := reopen(t, b, opt).Search(t.Context(), id, ".", "*")
		require.NoError(t, err)
		require.Len(t, found.Files, c.most)
		require.Equal(t, c.cut, found.Truncated)
	}
}

// TestSearchPattern: only an asterisk and a question mark are special.
func TestSearchPattern(t *testing.T) {
	b := newBox(t, options())
	for _, name := range []string{"WorldEdit [1.20].jar", "WorldEdit 1.jar", `back\slash`, "a^b", "\xff\n.txt"} {
		b.put(t, name, "")
	}
	for query, path := range map[string]string{
		"WorldEdit [1.20]*": "WorldEdit [1.20].jar", "*[1.2?].jar": "WorldEdit [1.20].jar", "[1.20]": "WorldEdit [1.20].jar",
		`back\*`: `back\slash`, "*^b": "a^b", `\xff\x0a.*`: `\xff\x0a.txt`, `\xff`: `\xff\x0a.txt`,
	} {
		found, err := b.Search(t.Context(), id, ".", query)
		require.NoError(t, err, query)
		require.Equal(t, v1.SearchResult{Files: []v1.FoundFile{{Path: path, Type: "file"}}}, found, query)
	}
	for _, query := range []string{"[a-z]*", `back\`, "*]"} {
		found, err := b.Search(t.Context(), id, ".", query+"x")
		require.NoError(t, err, query)
		require.Empty(t, found.Files, query)
	}
}

// TestSearchThatIsIncomplete: folders that the search does not enter make it incomplete.
func TestSearchThatIsIncomplete(t *testing.T) {
	opt := options()
	opt.Limits.Depth = 2
	b := newBox(t, opt)
	b.put(t, "a/f", "")
	b.put(t, "a/b/f", "")
	search := func() v1.SearchResult {
		found, err := b.Search(t.Context(), id, ".", "f")
		require.NoError(t, err)
		return found
	}
	require.Equal(t, v1.SearchResult{Files: []v1.FoundFile{{Path: "a/f", Type: "file"}}, Truncated: true}, search(), "deep")
	require.NoError(t, os.RemoveAll(filepath.Join(b.dir, "a/b")))
	require.False(t, search().Truncated)

	b.put(t, "secret/f", "")
	require.NoError(t, os.Chmod(filepath.Join(b.dir, "secret"), 0o000))
	for dir, n := b.dir, 0; n < 4; dir, n = filepath.Dir(dir), n+1 { // up to that of the test
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	goruntime.LockOSThread() // the rights are those of the thread
	defer goruntime.UnlockOSThread()
	if os.Geteuid() == 0 {
		require.NoError(t, unix.Setfsuid(65534))
		defer func() { require.NoError(t, unix.Setfsuid(0)) }()
	}
	require.Equal(t, v1.SearchResult{Files: []v1.FoundFile{{Path: "a/f", Type: "file"}}, Truncated: true}, search(), "unreadable")
}
