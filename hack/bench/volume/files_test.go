package volume_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/bench/table"
)

// BenchmarkList lists 10,000 entries: by ReadDir and Lstat, and by berth.
func BenchmarkList(b *testing.B) {
	m, dir := open(b)
	for i := range 10_000 {
		require.NoError(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("some file %d.txt", i)), nil, 0o644))
	}
	turns(b,
		contender{name: "bare", do: func() {
			list, err := os.ReadDir(dir)
			require.NoError(b, err)
			for _, e := range list {
				if _, err := os.Lstat(filepath.Join(dir, e.Name())); err != nil {
					b.Fatal(err)
				}
			}
		}},
		contender{name: "berth", do: func() {
			list, err := m.Files().List(b.Context(), id, ".")
			require.NoError(b, err)
			require.Len(b, list, 10_000)
		}},
	)
}

// BenchmarkWrite overwrites a file with 1 KiB: by a temporary file, fsync and rename;
// with an fsync of the folder as well; and by berth, which syncs the folder too.
func BenchmarkWrite(b *testing.B) {
	m, dir := open(b)
	data := bytes.Repeat([]byte("x"), 1024)
	require.NoError(b, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	sub := filepath.Join(dir, "sub")
	took, _ := turns(b,
		contender{name: "bare", do: func() { require.NoError(b, bare(sub, data, false)) }},
		contender{name: "bare+folder", do: func() { require.NoError(b, bare(sub, data, true)) }},
		contender{name: "berth", do: func() {
			require.NoError(b, m.Files().Write(b.Context(), id, "sub/file", bytes.NewReader(data)))
		}},
	)
	table.Add(b, table.Row{Measure: "write of a 1 KiB file, without HTTP", Unit: "ms", Berth: took[2], Floor: took[0], Goal: table.AtMost(1.5)})
}

// bare writes a complete file: a temporary file, fsync and rename.
func bare(dir string, data []byte, folder bool) error {
	f, err := os.CreateTemp(dir, "tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close(), os.Rename(f.Name(), filepath.Join(dir, "file")))
	if err != nil || !folder {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
