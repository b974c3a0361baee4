package backup_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime/volume/backup"
)

// grower is a context that adds a folder below the deepest one at each step of a walk, with a
// FIFO that the archive does not have.
type grower struct {
	context.Context
	t       *testing.T
	deepest *os.Root
	made    int
}

func (g *grower) Err() error {
	g.made++
	require.NoError(g.t, g.deepest.Mkdir("d", 0o700))
	next, err := g.deepest.OpenRoot("d")
	require.NoError(g.t, err)
	g.t.Cleanup(func() { next.Close() })
	g.deepest = next
	return nil
}

// TestTreeThatGrowsAheadEnds: by the number of entries, which cost no bytes.
func TestTreeThatGrowsAheadEnds(t *testing.T) {
	dir := t.TempDir()
	opt := backup.Options{NameBytes: 1 << 20, Bounds: backup.Bounds{Apparent: 100 * 4096}}
	g := &grower{t.Context(), t, open(t, dir), 0}
	_, err := backup.Write(g, open(t, dir), io.Discard, opt)
	require.ErrorContains(t, err, "too many files")
	require.ErrorIs(t, err, &v1.Error{Code: v1.SizeLimit})
	require.Less(t, g.made, 400, "it goes on")
}

// TestIgnoredNamesCount: names that the archive leaves out have a bound as well.
func TestIgnoredNamesCount(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600))
	}
	opt := backup.Options{NameBytes: 1 << 20, Ignore: []string{"*"}, Bounds: backup.Bounds{Apparent: 19 * 4096}}
	_, err := backup.Write(t.Context(), open(t, dir), io.Discard, opt)
	require.ErrorContains(t, err, "too many files")
	opt.Bounds.Apparent += 4096
	_, err = backup.Write(t.Context(), open(t, dir), io.Discard, opt)
	require.NoError(t, err)
}

// TestBytesHaveBound: a block for the root and each file.
func TestBytesHaveBound(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte(fmt.Sprintf("%05000d", 1)), 0o600))
	}
	opt := backup.Options{NameBytes: 1 << 20, Bounds: backup.Bounds{Bytes: 7 * 4096}}
	got, err := backup.Write(t.Context(), open(t, dir), io.Discard, opt)
	require.NoError(t, err)
	require.EqualValues(t, 7*4096, got.Bytes)
	opt.Bounds.Bytes--
	_, err = backup.Write(t.Context(), open(t, dir), io.Discard, opt)
	require.ErrorContains(t, err, "larger than its size limit")
}

// TestMatchingHasBound: patterns of many asterisks, and a path that nearly matches each of them.
func TestMatchingHasBound(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, strings.Repeat(strings.Repeat("a", 250)+"/", 12))
	require.NoError(t, os.MkdirAll(deep, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(deep, "file"), nil, 0o600))
	slow := slices.Repeat([]string{"**/" + strings.Repeat("*a", 28) + "b"}, 256)
	opt := backup.Options{NameBytes: 1 << 20, Ignore: slow, Bounds: backup.Bounds{Matching: time.Millisecond}}
	_, err := backup.Write(t.Context(), open(t, dir), io.Discard, opt)
	require.ErrorContains(t, err, "patterns of ignore take too long")
	require.ErrorIs(t, err, &v1.Error{Code: v1.SizeLimit})
	opt.Bounds.Matching = time.Hour
	_, err = backup.Write(t.Context(), open(t, dir), io.Discard, opt)
	require.NoError(t, err)
}
