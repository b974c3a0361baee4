package volume_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/pathtest"
)

// FuzzPath passes the same text to every path field. Files outside must stay
// unchanged, and every error must be an API error.
func FuzzPath(f *testing.F) {
	for _, p := range hostileTexts {
		f.Add(p)
	}
	for _, p := range []string{"a", "dir/file", "dir", ".", "up/outside", "chain/secret", "in/file", "a//b", "dir/./file", "file/x"} {
		f.Add(p)
	}
	b := newBox(f, options())
	outside := tree(f, b.outside, false)
	f.Fuzz(func(t *testing.T, p string) {
		require.NoError(t, os.RemoveAll(b.dir))
		require.NoError(t, b.Remove(t.Context(), id))
		require.NoError(t, b.Ensure(id))
		pathtest.Plant(t, b.dir)
		require.NoError(t, os.Symlink("dir", filepath.Join(b.dir, "in")))
		for _, field := range fields {
			err := field.call(t.Context(), b, p)
			var refused *v1.Error
			if err != nil && !errors.As(err, &refused) {
				t.Fatalf("%s of %q: %v", field.name, p, err)
			}
		}
		require.Empty(t, cmp.Diff(outside, tree(t, b.outside, false)))
		noTemps(t, b)
	})
}

// FuzzArchive extracts arbitrary bytes.
func FuzzArchive(f *testing.F) {
	for _, format := range v1.Formats() {
		for _, c := range hostileArchives {
			if len(c.parts) < 10 && (format != "zip" || c.parts[len(c.parts)-1].to == "") {
				f.Add(pack(f, format, c.parts))
			}
		}
		f.Add(pack(f, format, []part{file("a"), folder("b/"), link("c", "a"), {name: "d", data: strings.Repeat("0", 9000)}}))
	}
	b := newBox(f, smallLimits)
	outside := tree(f, b.outside, false)
	f.Fuzz(func(t *testing.T, data []byte) {
		require.NoError(t, b.Remove(t.Context(), id))
		require.NoError(t, b.Ensure(id))
		b.put(t, "a", string(data))
		err := b.Decompress(t.Context(), id, "a", "out")
		var refused *v1.Error
		if err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
		if err != nil {
			require.Equal(t, []string{"a"}, b.names(t), "it leaves nothing")
		}
		require.Empty(t, cmp.Diff(outside, tree(t, b.outside, false)))
		noTemps(t, b)
	})
}
