package store

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// sample is a store as a kill leaves it: one table, and a log with more.
func sample(t *testing.T) string {
	dir, left := t.TempDir(), t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, createBig(s, "table", noise()))
	require.NoError(t, s.Close())
	s, err = Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, create(s, "log-1"))
	require.NoError(t, create(s, "log-2"))
	require.NoError(t, os.CopyFS(left, os.DirFS(dir)))
	require.NoError(t, s.Close())
	return left
}

// one is the only file that matches.
func one(t *testing.T, dir, pattern string) string {
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	return names[len(names)-1]
}

func flip(t *testing.T, name string, at int) {
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	b[at] ^= 0x55
	require.NoError(t, os.WriteFile(name, b, 0o600))
}

func TestDamageIsRefusedWithInstructions(t *testing.T) {
	whole := sample(t)
	cases := map[string]func(t *testing.T, dir string){
		"table deleted":    func(t *testing.T, dir string) { require.NoError(t, os.Remove(one(t, dir, "*.sst"))) },
		"table cut":        func(t *testing.T, dir string) { require.NoError(t, os.Truncate(one(t, dir, "*.sst"), 50_000)) },
		"table flipped":    func(t *testing.T, dir string) { flip(t, one(t, dir, "*.sst"), 100_000) },
		"log deleted":      func(t *testing.T, dir string) { require.NoError(t, os.Remove(one(t, dir, "*.mem"))) },
		"log flipped":      func(t *testing.T, dir string) { flip(t, one(t, dir, "*.mem"), 100) },
		"log emptied":      func(t *testing.T, dir string) { require.NoError(t, os.Truncate(one(t, dir, "*.mem"), 0)) },
		"manifest deleted": func(t *testing.T, dir string) { require.NoError(t, os.Remove(one(t, dir, "MANIFEST"))) },
		"manifest cut":     func(t *testing.T, dir string) { require.NoError(t, os.Truncate(one(t, dir, "MANIFEST"), 20)) },
		"manifest flipped": func(t *testing.T, dir string) { flip(t, one(t, dir, "MANIFEST"), 20) },
		"all but the mark deleted": func(t *testing.T, dir string) {
			mark, err := os.ReadFile(one(t, dir, markName))
			require.NoError(t, err)
			require.NoError(t, os.RemoveAll(dir))
			require.NoError(t, os.Mkdir(dir, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, markName), mark, 0o600))
		},
	}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(whole)))
			table := one(t, dir, "*.sst")
			damage(t, dir)
			_, err := Open(dir, Options{})
			require.ErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, "restore a backup")
			if name == "manifest deleted" {
				require.FileExists(t, table, "what is left is left alone")
			}
		})
	}
}

func TestWhatIsNotDamageIsOpened(t *testing.T) {
	whole := sample(t)
	cases := map[string]func(t *testing.T, dir string){
		"nothing":         func(*testing.T, string) {},
		"mark flipped":    func(t *testing.T, dir string) { flip(t, one(t, dir, markName), 40) },
		"mark emptied":    func(t *testing.T, dir string) { require.NoError(t, os.Truncate(one(t, dir, markName), 0)) },
		"reserve deleted": func(t *testing.T, dir string) { require.NoError(t, os.Remove(one(t, dir, reserveName))) },
		"empty log of a kill while it was made": func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "00009.mem"), nil, 0o600))
		},
		"table of a kill while it was written": func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "000009.sst"), make([]byte, 5000), 0o600))
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(whole)))
			change(t, dir)
			s := openIn(t, dir)
			require.EqualValues(t, 3, s.Revision())
			require.NoError(t, create(s, "more"))
		})
	}
}

// A new id would make every container another store's, and start second ones.
func TestStoreWithoutMarkKeepsItsID(t *testing.T) {
	dir, whole := sample(t), t.TempDir()
	require.NoError(t, os.CopyFS(whole, os.DirFS(dir)))
	was, old := again(t, whole)
	flip(t, one(t, dir, "*.mem"), 100)
	_, err := Open(dir, Options{})
	require.ErrorContains(t, err, "remove the file MARK")
	require.NoError(t, os.Remove(one(t, dir, markName)))
	id, epoch := again(t, dir)
	require.Equal(t, was, id)
	require.NotEqual(t, old, epoch)
	s := openIn(t, dir)
	require.Equal(t, id, s.ID())
	require.Equal(t, epoch, s.History.Epoch(), "the new epoch stays")
	require.EqualValues(t, 1, s.Revision())
	require.False(t, s.History.Remembers("", 3), "what was made after it is newer, for good")
}

func TestStoreWithoutItsNumbersIsRefused(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, create(s, "a"))
	require.NoError(t, s.Update(func(tx *Tx) error { return tx.remove(schemaKey) }))
	require.NoError(t, s.Close())
	_, err = Open(dir, Options{})
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "move its directory away")
}

func TestOneBadObjectStallsNoOther(t *testing.T) {
	var log bytes.Buffer
	s, err := Open("", Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	defer s.Close()
	for _, id := range []string{"a", "b", "c"} {
		require.NoError(t, create(s, id))
		require.NoError(t, s.Update(func(tx *Tx) error {
			Emit(tx, v1.Event{Container: id})
			return Containers.SetStatus(tx, id, func(st *v1.ContainerStatus) { st.Phase = v1.Ready })
		}))
	}
	require.NoError(t, s.Update(func(tx *Tx) error {
		require.NoError(t, tx.set("container/b/spec", []byte("{}\n{cut")))
		require.NoError(t, tx.set("container/c/status", []byte("nothing")))
		return tx.set(eventKey(2), []byte("{cut"))
	}))
	require.NoError(t, s.View(func(tx *Tx) error {
		list, err := Containers.List(tx)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, "a", list[0].Meta.ID)
		require.Equal(t, []string{"a", "b", "c"}, Containers.IDs(tx))
		for _, id := range []string{"b", "c"} {
			_, err = Containers.Get(tx, id)
			require.ErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, "container "+id)
		}
		events, err := ReadEvents(tx, 0, 10)
		require.NoError(t, err)
		require.Len(t, events, 3)
		require.EqualValues(t, 2, events[1].Seq)
		return nil
	}))
	require.Contains(t, log.String(), "object cannot be read")
}
