package volume_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
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
			list, err := m.List(b.Context(), id, ".")
			require.NoError(b, err)
			require.Len(b, list, 10_000)
		}},
	)
}
