package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime/volume/snapshot"
	"berth/runtime/volume/walk"
)

// grower is a context that adds a folder below the deepest one at each step of a walk, so
// that the walk would never reach the end before the longest path.
type grower struct {
	context.Context
	t       *testing.T
	deepest *walk.Dir
	made    int
}

func (g *grower) Err() error {
	if g.made++; g.made < 1900 {
		require.NoError(g.t, g.deepest.Mkdir("d"))
		next, err := g.deepest.Open("d")
		require.NoError(g.t, err)
		g.t.Cleanup(next.Close)
		g.deepest = next
	}
	return nil
}

// TestTreeThatGrowsAheadEnds: by the number of names, which cost no bytes.
func TestTreeThatGrowsAheadEnds(t *testing.T) {
	dir := t.TempDir()
	opt := snapshot.Options{TempDir: dir, NameBytes: 1 << 20, Bounds: snapshot.Bounds{Steps: 500}}
	g := &grower{t.Context(), t, open(t, dir), 0}
	_, err := snapshot.Write(g, open(t, dir), io.Discard, opt)
	require.ErrorContains(t, err, "too many files")
	require.True(t, errors.Is(err, &v1.Error{Code: v1.SizeLimit}))
	require.Less(t, g.made, 510, "it goes on")
}

// TestHiddenNamesCount: names that the archive leaves out are steps as well.
func TestHiddenNamesCount(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600))
	}
	opt := snapshot.Options{TempDir: dir, NameBytes: 1 << 20, Hidden: func(string) bool { return true }, Bounds: snapshot.Bounds{Steps: 20}}
	_, err := snapshot.Write(t.Context(), open(t, dir), io.Discard, opt)
	require.ErrorContains(t, err, "too many files")
	opt.Bounds.Steps = 21
	_, err = snapshot.Write(t.Context(), open(t, dir), io.Discard, opt)
	require.NoError(t, err)
}

// TestBytesHaveBound: a block for the root and each file.
func TestBytesHaveBound(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), make([]byte, 5000), 0o600))
	}
	opt := snapshot.Options{TempDir: dir, NameBytes: 1 << 20, Bounds: snapshot.Bounds{Bytes: 7 * 4096}}
	got, err := snapshot.Write(t.Context(), open(t, dir), io.Discard, opt)
	require.NoError(t, err)
	require.EqualValues(t, 7*4096, got.Bytes)
	opt.Bounds.Bytes--
	_, err = snapshot.Write(t.Context(), open(t, dir), io.Discard, opt)
	require.ErrorContains(t, err, "larger than its size limit")
}
