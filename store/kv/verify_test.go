package kv

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// withTables returns the directory of a closed database with some tables.
func withTables(t testing.TB) (dir string, tables []string) {
	t.Helper()
	dir = t.TempDir()
	db, err := Open(dir, Options{})
	require.NoError(t, err)
	for i := range 200 {
		random := make([]byte, 2000)
		_, _ = rand.Read(random)
		require.NoError(t, put(db, fmt.Sprintf("a/%05d", i), hex.EncodeToString(random)))
	}
	require.NoError(t, db.Close())
	tables, err = filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	require.NotEmpty(t, tables)
	return dir, tables
}

// TestVerify flips one bit in each part of a table, and cuts it.
func TestVerify(t *testing.T) {
	dir, tables := withTables(t)
	o := badgerOptions(dir, nil)
	require.NoError(t, verify(o))
	name := tables[0]
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	refused := 0
	for at := 0; at < len(whole); at += 1 + len(whole)/100 {
		damaged := append([]byte(nil), whole...)
		damaged[at] ^= 1 << (at % 8)
		require.NoError(t, os.WriteFile(name, damaged, 0o600))
		// Rarely a block decompresses to the same content all the same.
		if err := verify(o); err != nil {
			require.ErrorIs(t, err, ErrDamaged)
			refused++
		}
	}
	require.Greater(t, refused, 80)
	for _, size := range []int{0, 1, 3, 4, 5, 100, len(whole) / 2, len(whole) - 1} {
		require.NoError(t, os.WriteFile(name, whole[:size], 0o600))
		require.ErrorIs(t, verify(o), ErrDamaged, "%d of %d bytes", size, len(whole))
	}
	require.NoError(t, os.Remove(name))
	require.ErrorIs(t, verify(o), ErrDamaged)
}
