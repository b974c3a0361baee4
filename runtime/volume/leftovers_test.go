package volume

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/runtime/volume/walk"
)

func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	plant := func(base string, names ...string) {
		for _, name := range names {
			require.NoError(t, os.MkdirAll(filepath.Join(base, name), 0o700))
		}
	}
	l := newLeftovers()
	find := func(base, name string, want ...string) {
		t.Helper()
		r, err := os.OpenRoot(base)
		require.NoError(t, err)
		defer r.Close()
		d, err := walk.OpenDir(r, ".")
		require.NoError(t, err)
		defer d.Close()
		found, err := l.find(d, name)
		require.NoError(t, err)
		require.ElementsMatch(t, want, found)
	}
	plant(dir, "a", ".removing-b", ".removing-b-1", ".removing-bc", ".restoring-b", ".restoring-b-0123456789abcdef")
	l.add(".removing-early")
	find(dir, ".removing-b", ".removing-b", ".removing-b-1")
	find(dir, ".restoring-b", ".restoring-b", ".restoring-b-0123456789abcdef")
	find(dir, ".restoring-a", ".restoring-a")
	find(dir, ".removing-early", ".removing-early")
	l.drop(".removing-b")
	l.add(".removing-a")
	find(dir, ".removing-b", ".removing-b", ".removing-b-1")
	find(dir, ".removing-a", ".removing-a")
	plant(dir, ".removing-d-1")
	find(dir, ".removing-d", ".removing-d") // the directory is read once
	other := t.TempDir()
	plant(other, ".removing-d-1", ".removing-d-2")
	find(other, ".removing-d", ".removing-d", ".removing-d-1", ".removing-d-2") // as after a mount
}
