package volume_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestExtractSystemArchives(t *testing.T) {
	src := t.TempDir()
	plant(t, src, treeSize())
	want := tree(t, src, true)
	makers := map[string][]string{
		"a.zip":     {"zip", "-qry"},
		"a.tar":     {"tar", "-cf"},
		"gnu.tar":   {"tar", "--format=gnu", "-S", "-cf"},
		"pax.tar":   {"tar", "--format=pax", "-S", "-cf"},
		"a.tar.gz":  {"tar", "-czf"},
		"a.tar.bz2": {"tar", "-cjf"},
	}
	for name, args := range makers {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, options())
			args := append(args[:len(args):len(args)], filepath.Join(b.dir, name))
			run(t, src, args[0], append(args[1:], ".")...)
			require.NoError(t, b.Decompress(t.Context(), id, name, "."))
			require.NoError(t, os.Remove(filepath.Join(b.dir, name)))
			require.Empty(t, cmp.Diff(want, tree(t, b.dir, true)))
		})
	}
}

func TestStrippedModes(t *testing.T) {
	for _, format := range v1.Formats() {
		b := newBox(t, options())
		parts := []part{{name: "suid", data: "x", mode: 0o6755}, {name: "sticky/", kind: tar.TypeDir, mode: 0o3777}}
		b.put(t, "a", string(pack(t, format, parts)))
		require.NoError(t, b.Decompress(t.Context(), id, "a", "out"))
		for name, mode := range map[string]fs.FileMode{"suid": 0o755, "sticky": 0o777 | fs.ModeDir} {
			info, err := os.Stat(filepath.Join(b.dir, "out", name))
			require.NoError(t, err)
			require.Equal(t, mode, info.Mode(), format)
		}
	}
}

func TestTimesInZips(t *testing.T) {
	b := newBox(t, options())
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	_, err := w.CreateHeader(&zip.FileHeader{Name: "dos", ModifiedDate: 0x5a21, ModifiedTime: 0x6000})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	b.put(t, "a", buf.String())
	require.NoError(t, b.Decompress(t.Context(), id, "a", "out"))
	info, err := os.Stat(filepath.Join(b.dir, "out/dos"))
	require.NoError(t, err)
	require.Equal(t, time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC), info.ModTime().UTC())
}

// TestRepeatedExtractKeepsUsage extracts the same archive several times and checks
// that the usage stays the same.
func TestRepeatedExtractKeepsUsage(t *testing.T) {
	b := newBox(t, options())
	ctx := t.Context()
	b.put(t, "a.tar", string(pack(t, "tar", []part{file("x")})))
	require.NoError(t, b.Decompress(ctx, id, "a.tar", "."))
	measured, err := b.Scan(ctx, id)
	require.NoError(t, err)
	for range 50 {
		require.NoError(t, b.Decompress(ctx, id, "a.tar", "."))
	}
	require.InDelta(t, measured.Bytes, b.Used(id).Bytes, 4<<10)
}
