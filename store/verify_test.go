package store

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// content returns the names and contents of the files below dir.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		files[e.Name()] = string(text)
	}
	return files
}

func TestVerifyChangesNothing(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, create(s, "a"))
	_, err = Verify(t.Context(), dir)
	require.ErrorIs(t, err, ErrLocked, "it is open")
	require.NoError(t, s.Close())

	before := content(t, dir)
	version, err := Verify(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, newestVersion(), version)
	require.Equal(t, before, content(t, dir))
}

func TestVerifyOfCrashedStore(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, create(s, "a"))
	crashed := t.TempDir()
	require.NoError(t, os.CopyFS(crashed, os.DirFS(dir)))
	require.NoError(t, s.Close())
	before := content(t, crashed)
	version, err := Verify(t.Context(), crashed)
	require.NoError(t, err)
	require.Zero(t, version, "its log is not replayed")
	require.Equal(t, before, content(t, crashed))
}

func TestVerifyFindsDamage(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, create(s, "a"))
	require.NoError(t, s.Close())
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	require.NotEmpty(t, tables)
	require.NoError(t, os.Truncate(tables[0], 100))
	_, err = Verify(t.Context(), dir)
	require.ErrorIs(t, err, ErrDamaged)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Verify(ended, dir)
	require.ErrorIs(t, err, context.Canceled)
}

func TestVerifyOfNewerStore(t *testing.T) {
	dir := t.TempDir()
	s, err := open(dir, Options{}, make([]migration, 5))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = Verify(t.Context(), dir)
	require.ErrorIs(t, err, ErrNewer)
	require.ErrorContains(t, err, "start the newer one")
}

func TestVerifyWithoutStore(t *testing.T) {
	_, err := Verify(t.Context(), filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, ErrFailed)
	require.ErrorIs(t, err, os.ErrNotExist)
}
