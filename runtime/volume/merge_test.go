package volume_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestMerge(t *testing.T) {
	for _, format := range v1.Formats() {
		b := newBox(t, options())
		b.put(t, "dest/keep", "mine")
		b.put(t, "dest/sub/keep", "mine")
		b.put(t, "dest/sub/replace", "old")
		require.NoError(t, os.Symlink("keep", filepath.Join(b.dir, "dest/sub/link")))
		b.put(t, "a", string(pack(t, format, []part{
			{name: "sub/replace", data: "new"}, {name: "sub/link", data: "new"}, {name: "sub/more/x", data: "x"}, file("./top"),
			{name: "top", data: "the last one counts"}})))
		require.NoError(t, b.Decompress(t.Context(), id, "a", "dest"))
		require.Equal(t, "mine", b.get(t, "dest/keep"))
		require.Equal(t, "mine", b.get(t, "dest/sub/keep"), "not written through the link")
		require.Equal(t, "new", b.get(t, "dest/sub/replace"))
		require.Equal(t, "new", b.get(t, "dest/sub/link"))
		require.Equal(t, "x", b.get(t, "dest/sub/more/x"))
		require.Equal(t, "the last one counts", b.get(t, "dest/top"))
		require.Len(t, b.names(t), 10, "nothing temporary is left")
	}
}

// TestConflictNamesPath checks that a conflict names the path in the volume.
func TestConflictNamesPath(t *testing.T) {
	for _, format := range v1.Formats() {
		b := newBox(t, options())
		b.put(t, "dest/sub/x", "a file")
		b.put(t, "y", "a file")
		b.put(t, "a", string(pack(t, format, []part{file("sub/x/z"), file("y/z")})))
		for dest, path := range map[string]string{"dest": "dest/sub/x", ".": "y", "y/new": "y", "dest/sub/x/new/too": "dest/sub/x"} {
			require.EqualError(t, b.Decompress(t.Context(), id, "a", dest), "File already exists at path: "+path, dest)
			require.Len(t, b.names(t), 5, "nothing was moved")
		}
	}
}

// TestUsageAfterHalfAMerge: what a merge has moved before it failed counts toward the limit.
func TestUsageAfterHalfAMerge(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "dest/m/file", "mine")
	b.put(t, "a", string(pack(t, "tar", []part{{name: "a", data: strings.Repeat("x", 100_000)}, {name: "m/file", data: "new"}, {name: "z", data: strings.Repeat("x", 100_000)}})))
	_, err := b.Scan(t.Context(), id)
	require.NoError(t, err)
	for n := range 60 { // a cancel at each step of the work
		ctx := &after{Context: t.Context()}
		ctx.n.Store(int64(n))
		failed := b.Decompress(ctx, id, "a", "dest")
		counted := b.Used(id).Bytes
		_, err := b.Scan(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, b.Used(id).Bytes, counted, "step %d: %v", n, failed)
		for _, name := range []string{"a", "z"} {
			require.NoError(t, os.RemoveAll(filepath.Join(b.dir, "dest", name)))
		}
		_, err = b.Scan(t.Context(), id)
		require.NoError(t, err)
	}
}
