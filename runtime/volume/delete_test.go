package volume_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// TestDeleteCancelled checks that a scan removes the rest of a canceled deletion, even
// if it is not the first scan.
func TestDeleteCancelled(t *testing.T) {
	b := newBox(t, options())
	plant(t, b.dir, 300)
	require.NoError(t, os.Mkdir(filepath.Join(b.dir, "all"), 0o755))
	require.NoError(t, b.Rename(t.Context(), id, "plain", "all/plain"))
	_, err := b.Scan(t.Context(), id)
	require.NoError(t, err)
	ctx := &after{Context: t.Context()}
	ctx.n.Store(5)
	require.ErrorIs(t, b.Delete(ctx, id, "all", nil), context.Canceled)
	require.NoDirExists(t, filepath.Join(b.dir, "all"))
	_, err = b.Scan(t.Context(), id)
	require.NoError(t, err)
	noTemps(t, b)
}

// acting is a context that calls a function at the n-th step of an operation.
type acting struct {
	context.Context
	left *int
	act  func()
}

func (a acting) Err() error {
	if *a.left--; *a.left == 0 {
		a.act()
	}
	return a.Context.Err()
}

const victim = "99999999-2222-3333-4444-555555555555"

// TestRemovalWithSwappedParents removes a volume, or a folder of it, while its tenant
// replaces a parent of the removed folder by a link to another tenant's volume: once
// at every step, so that the test does not depend on luck.
func TestRemovalWithSwappedParents(t *testing.T) {
	removals := map[string]struct {
		top    string // where the tree is while it is removed; * is a temporary name
		remove func(ctx context.Context, b box) error
	}{
		"volume": {".tmp/" + id + "/*/tree", func(ctx context.Context, b box) error { return b.Remove(ctx, id) }},
		"folder": {".tmp/" + id + "/*", func(ctx context.Context, b box) error { return b.Delete(ctx, id, "tree", nil) }},
	}
	for name, r := range removals {
		for _, level := range []int{10, 46, 47} {
			t.Run(fmt.Sprint(name, " ", level), func(t *testing.T) {
				top, swaps, acted := inMemory(t, "64m"), 0, true
				for step := 1; acted; step++ {
					b := newVictim(t, filepath.Join(top, strconv.Itoa(step)))
					base, left := filepath.Dir(b.dir), step
					before, outside := tree(t, b.Path(victim), true), tree(t, b.outside, true)
					acted = false
					act := func() { acted, swaps = true, swaps+swap(base, r.top, level) }
					for range 20 { // a removal that conflicts with a tenant's changes may be retried
						if r.remove(acting{t.Context(), &left, act}, b) == nil {
							break
						}
					}
					require.Equal(t, before, tree(t, b.Path(victim), true), "swapped at step %d", step)
					require.Equal(t, outside, tree(t, b.outside, true))
				}
				t.Logf("%d swaps", swaps)
				require.Greater(t, swaps, 10)
			})
		}
	}
}

// newVictim creates a deep tree to remove in one volume, and files that must survive
// in another volume and outside.
func newVictim(t *testing.T, top string) box {
	t.Helper()
	b := newBoxIn(t, top, options())
	require.NoError(t, b.Ensure(victim))
	for _, dir := range []string{b.Path(victim), b.outside} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "d", "d"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "d", "d", "world"), []byte("precious"), 0o644))
	}
	require.NoError(t, os.Mkdir(filepath.Join(b.dir, "tree"), 0o755))
	deep(t, filepath.Join(b.dir, "tree"), "d", 60, 1)
	return b
}

// swap moves the folder level folders below top away and puts a link to the victim's
// volume in its place. It returns 1, or 0 if there is no such folder.
func swap(base, top string, level int) int {
	tops, _ := filepath.Glob(filepath.Join(base, top))
	for _, top := range tops {
		dir := filepath.Join(top, strings.Repeat("d/", level))
		above := strings.Count(strings.TrimPrefix(dir, base+"/"), "/")
		if os.Rename(dir, filepath.Join(top, "away")) == nil && os.Symlink(strings.Repeat("../", above)+victim, dir) == nil {
			return 1
		}
	}
	return 0
}

func TestDeleteKeepsLinkTarget(t *testing.T) {
	b := newBox(t, options())
	require.NoError(t, os.Symlink(b.outside, filepath.Join(b.dir, "out")))
	require.NoError(t, b.Rename(t.Context(), id, "out", "moved"))
	require.NoError(t, b.Delete(t.Context(), id, "moved", nil))
	require.FileExists(t, filepath.Join(b.outside, "folder/secret"))
	require.Empty(t, b.names(t))
}

// TestDeletionsAreCheckedInTurn: no other request replaces or deletes a file between the check of a deletion and its change.
func TestDeletionsAreCheckedInTurn(t *testing.T) {
	b := newBox(t, options())
	var checking atomic.Int32
	check := func(fs.FileInfo) error {
		defer checking.Add(-1)
		if checking.Add(1) > 1 {
			return errors.New("another check is not done")
		}
		time.Sleep(time.Millisecond) // for the others to arrive
		return nil
	}
	var all errgroup.Group
	for i := range 8 {
		name := fmt.Sprint("f", i)
		require.NoError(t, os.WriteFile(filepath.Join(b.dir, name), nil, 0o644))
		all.Go(func() error { return b.Delete(t.Context(), id, name, check) })
	}
	require.NoError(t, all.Wait())
}
