package volume_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

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
		found, err := reopen(t, b, opt).Files().Search(t.Context(), id, ".", "*")
		require.NoError(t, err)
		require.Len(t, found.Files, c.most)
		require.Equal(t, c.cut, found.Truncated)
	}
}
