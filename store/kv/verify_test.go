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

// TestChecksumsOfTables flips one bit in each part of a table, and cuts it: Badger's own
// verification refuses it too.
func TestChecksumsOfTables(t *testing.T) {
	_, tables := withTables(t)
	name := tables[0]
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	var sums checksums
	require.True(t, sums.match(name), "Badger's own table")
	refused := 0
	for at := 0; at < len(whole); at += 1 + len(whole)/500 {
		damaged := append([]byte(nil), whole...)
		damaged[at] ^= 1 << (at % 8)
		require.NoError(t, os.WriteFile(name, damaged, 0o600))
		// Rarely a block decompresses to the same content all the same.
		matches, err := sums.match(name), verifyTable(name, badgerOptions(filepath.Dir(name), nil))
		require.Equal(t, err == nil, matches, "byte %d of %d", at, len(whole))
		if err != nil {
			refused++
		}
	}
	require.Greater(t, refused, 400)
	for _, size := range []int{0, 1, 3, 4, 5, 100, len(whole) / 2, len(whole) - 1} {
		require.NoError(t, os.WriteFile(name, whole[:size], 0o600))
		require.False(t, sums.match(name), "%d of %d bytes", size, len(whole))
	}
	require.NoError(t, os.Remove(name))
	require.False(t, sums.match(name))
}

// TestVerifyAllocatesLittle counts allocations: Badger's own verification has some for
// each of the 100 blocks, as large as the block.
func TestVerifyAllocatesLittle(t *testing.T) {
	dir, tables := withTables(t)
	o := badgerOptions(dir, nil)
	least := testing.AllocsPerRun(1, func() { require.NoError(t, verifyTable(tables[0], o)) })
	require.Greater(t, least, 100.0)
	require.Less(t, testing.AllocsPerRun(1, func() { require.NoError(t, verify(t.Context(), o)) }), least/2)
}

func BenchmarkVerify(b *testing.B) {
	dir, tables := withTables(b)
	o := badgerOptions(dir, nil)
	b.Run("checksums", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, verify(b.Context(), o))
		}
	})
	b.Run("badger", func(b *testing.B) {
		for b.Loop() {
			for _, name := range tables {
				require.NoError(b, verifyTable(name, o))
			}
		}
	})
}
