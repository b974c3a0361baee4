package volume

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// names returns what a client of SFTP finds in a volume.
func names(t *testing.T, m *Manager, id string) (list []string) {
	t.Helper()
	d, err := m.Files().InPlace().OpenFolder(t.Context(), id, ".")
	require.NoError(t, err)
	defer d.Close()
	for info, err := d.Next(); err == nil; info, err = d.Next() {
		list = append(list, info.Name())
	}
	return list
}

// kept returns a copy of what stays open.
func kept(m *Manager) map[string]*sharedRoot {
	m.roots.mu.Lock()
	defer m.roots.mu.Unlock()
	return maps.Clone(m.roots.kept)
}

func newManager(t *testing.T) *Manager {
	t.Helper()
	m, err := New(t.TempDir(), Options{UID: -1, GID: -1})
	require.NoError(t, err)
	return m
}

func TestRootsStayOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		require.NoError(t, m.Ensure("a"))
		_, err := m.Files().List(t.Context(), "a", ".")
		require.NoError(t, err)
		require.Empty(t, kept(m), "only the operations of SFTP keep it")
		require.Empty(t, names(t, m, "a"))
		first := kept(m)["a"]
		require.NotNil(t, first)
		for range 3 {
			time.Sleep(rootTime * 3 / 4)
			require.Empty(t, names(t, m, "a"))
			require.Same(t, first, kept(m)["a"])
		}
		used, err := m.roots.open("a", true)
		require.NoError(t, err)
		require.Same(t, first, used)
		time.Sleep(2 * rootTime)
		require.Same(t, first, kept(m)["a"], "it has a user")
		m.roots.release(used)
		time.Sleep(2*rootTime + 1)
		synctest.Wait()
		require.Empty(t, kept(m))
		_, err = first.Stat(".")
		require.ErrorIs(t, err, os.ErrClosed)
	})
}

// TestRootsThatAreReplaced: an operator's change is noticed after rootCheck, one of berth at once.
func TestRootsThatAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		require.NoError(t, m.Ensure("a"))
		require.Empty(t, names(t, m, "a"))
		old := kept(m)["a"]
		require.NoError(t, os.Rename(m.Path("a"), m.Path("b")))
		require.NoError(t, m.Ensure("a"))
		require.NoError(t, os.WriteFile(filepath.Join(m.Path("a"), "new"), nil, 0o600))
		require.Empty(t, names(t, m, "a"), "for a moment")
		time.Sleep(rootCheck)
		require.Equal(t, []string{"new"}, names(t, m, "a"))
		_, err := old.Stat(".")
		require.ErrorIs(t, err, os.ErrClosed)

		require.NoError(t, m.Remove(t.Context(), "a"))
		require.Empty(t, kept(m))
		require.NoError(t, m.Ensure("a"))
		require.Empty(t, names(t, m, "a"))
		time.Sleep(2*rootTime + 1)
	})
}

func TestRootsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		for i := range maxRoots + 5 {
			id := fmt.Sprint("v", i)
			require.NoError(t, m.Ensure(id))
			require.Empty(t, names(t, m, id))
		}
		require.Len(t, kept(m), maxRoots)
		time.Sleep(2*rootTime + 1)
		synctest.Wait()
		require.Empty(t, kept(m))
	})
}
