package volume_test

import (
	"os"
	"path/filepath"
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
