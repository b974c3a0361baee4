package store

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// storeFile writes a backup to a file and opens it.
func storeFile(t *testing.T, content []byte) *os.File {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "backup")
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	_, err = f.Write(content)
	require.NoError(t, err)
	_, err = f.Seek(0, 0)
	require.NoError(t, err)
	return f
}

func TestStoreBackupAndRestore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	create := func(id string) {
		require.NoError(t, s.Update(func(tx *Tx) error { return Volumes.Create(tx, id, v1.VolumeSpec{Name: id}) }))
	}
	for i := range 500 {
		create(strconv.Itoa(i))
	}
	epoch, id := s.Incarnations.Epoch(), s.ID()
	var backup bytes.Buffer
	require.NoError(t, Backup(s, &backup))
	create("later")
	_, err = Restore(dir, storeFile(t, backup.Bytes()))
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, s.Close())
	require.ErrorIs(t, Backup(s, &bytes.Buffer{}), ErrClosed)

	for name, damage := range map[string]func([]byte) []byte{
		"truncated": func(b []byte) []byte { return b[:len(b)-1] },
		"flipped":   func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"longer":    func(b []byte) []byte { return append(b, 'x') },
		"empty":     func([]byte) []byte { return nil },
	} {
		_, err = Restore(dir, storeFile(t, damage(bytes.Clone(backup.Bytes()))))
		require.ErrorIs(t, err, ErrNoBackup, name)
	}
	kept, err := Restore(dir, storeFile(t, backup.Bytes()))
	require.NoError(t, err)
	require.DirExists(t, kept)
	s, err = Open(dir, Options{})
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, id, s.ID(), "its containers still belong to it")
	require.NotEqual(t, epoch, s.Incarnations.Epoch())
	{
		tx := s.Read()
		require.Len(t, Volumes.IDs(tx), 500)
		_, err := Volumes.Get(tx, "later")
		require.ErrorIs(t, err, ErrNotFound)
	}
	into := filepath.Join(t.TempDir(), "new", "store")
	require.NoError(t, os.MkdirAll(filepath.Dir(into), 0o700))
	kept, err = Restore(into, storeFile(t, backup.Bytes()))
	require.NoError(t, err)
	require.Empty(t, kept)
}

// TestReplaceLeavesNoGap: whoever looks, at whatever moment of a restore, finds one of the two stores.
func TestReplaceLeavesNoGap(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.Mkdir(dir, 0o700))
	stop, looked := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				looked <- nil
				return
			default:
			}
			if _, err := os.Lstat(dir); err != nil {
				looked <- err
				return
			}
		}
	}()
	for i := range 300 {
		next := filepath.Join(filepath.Dir(dir), "next")
		require.NoError(t, os.Mkdir(next, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(next, "name"), []byte(strconv.Itoa(i)), 0o600))
		kept, err := replace(dir, next)
		require.NoError(t, err)
		require.NoDirExists(t, next)
		require.DirExists(t, kept)
		require.NoError(t, os.RemoveAll(kept))
		name, err := os.ReadFile(filepath.Join(dir, "name"))
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(i), string(name))
	}
	close(stop)
	require.NoError(t, <-looked)
}
