package volume_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// TestListMemoryIsBounded lists a folder with more files than the memory allows.
func TestListMemoryIsBounded(t *testing.T) {
	opt := options()
	opt.Limits.ListBytes = 16 << 10
	b := newBox(t, opt)
	for i := range 60 {
		b.put(t, fmt.Sprint("fits/", strings.Repeat("n", 100), i), "")
		b.put(t, fmt.Sprint("many/", strings.Repeat("n", 200), i), "")
	}
	list, err := b.List(t.Context(), id, "fits")
	require.NoError(t, err)
	require.Len(t, list, 60)
	_, err = b.List(t.Context(), id, "many")
	require.Equal(t, "size_limit_exceeded", code(err))
}

// TestListLinks: a list has the target of each link, and the type of what it leads to in the volume.
func TestListLinks(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "logs/7.log", "text")
	b.put(t, "in/plain", "")
	for name, target := range map[string]string{"file": "../logs/7.log", "folder": "../logs", "missing": "nothing",
		"outside": "/etc/passwd", "up": "../../..", "loop": "loop", "chain": "file", "odd": "a\nb"} {
		require.NoError(t, os.Symlink(target, filepath.Join(b.dir, "in", name)))
	}
	list, err := b.List(t.Context(), id, "in")
	require.NoError(t, err)
	found := map[string][2]string{}
	for _, e := range list {
		require.Equal(t, "file", e.Type)
		require.Equal(t, e.Name != "plain", e.Symlink)
		found[e.Name] = [2]string{e.Link, e.TargetType}
	}
	require.Equal(t, map[string][2]string{"plain": {}, "file": {"../logs/7.log", "file"}, "folder": {"../logs", "directory"}, "chain": {"file", "file"},
		"missing": {"nothing", ""}, "outside": {"/etc/passwd", ""}, "up": {"../../..", ""}, "loop": {"loop", ""}, "odd": {`a\x0ab`, ""}}, found)
}

func TestList(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "b.txt", "12345")
	b.put(t, "a/inner", "")
	b.put(t, "Z/inner", "")
	require.NoError(t, os.Symlink("a", filepath.Join(b.dir, "to-a")))
	list, err := b.List(t.Context(), id, ".")
	require.NoError(t, err)
	var seen []string
	for _, e := range list {
		require.NotZero(t, e.ModifiedAt)
		seen = append(seen, e.Type+" "+e.Name+" "+e.Mode)
	}
	want := []string{"directory Z 0755", "directory a 0755", "file b.txt 0644", "file to-a 0777"}
	require.Empty(t, cmp.Diff(want, seen))
	require.Equal(t, int64(5), list[2].Size)
	require.Zero(t, list[0].Size)
	require.True(t, list[3].Symlink)

	through, err := b.List(t.Context(), id, "to-a")
	require.NoError(t, err)
	require.Len(t, through, 1)
	empty, err := b.List(t.Context(), id, "a/")
	require.NoError(t, err)
	require.NotNil(t, empty)
	for _, p := range []string{"none", "b.txt", "b.txt/x"} {
		_, err = b.List(t.Context(), id, p)
		require.EqualError(t, err, "Path not found: "+p)
	}
}
