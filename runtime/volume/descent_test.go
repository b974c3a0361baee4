package volume_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

// mostHandles is how many handles one operation may hold.
const mostHandles = 32

// inMemory returns a folder of a tmpfs, which needs no fsync.
func inMemory(t *testing.T, size string) string {
	t.Helper()
	top := t.TempDir()
	require.NoError(t, unix.Mount("berth-test", top, "tmpfs", 0, "size="+size))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(top, unix.MNT_DETACH)) })
	return top
}

// counting is a context that counts the open handles of the process at the steps
// of an operation.
type counting struct {
	context.Context
	t           *testing.T
	steps, most *int
}

func (c counting) Err() error {
	if *c.steps++; *c.steps%10 == 0 {
		*c.most = max(*c.most, descriptors(c.t))
	}
	return c.Context.Err()
}

// TestHandlesAtAnyDepth runs every operation on a tree 250 folders deep, which is
// within the limits of all, and on one of 4,096.
func TestHandlesAtAnyDepth(t *testing.T) {
	within := strings.TrimSuffix(strings.Repeat("d/", 250), "/")
	calls := map[string]func(ctx context.Context, b box) error{
		"search": func(ctx context.Context, b box) error { _, err := b.Search(ctx, id, "in", "file"); return err },
		"copy":   func(ctx context.Context, b box) error { return b.Copy(ctx, id, "in", "copy") },
		"scan":   func(ctx context.Context, b box) error { _, err := b.Scan(ctx, id); return err },
		"list":   func(ctx context.Context, b box) error { _, err := b.List(ctx, id, "in/"+within); return err },
		"mkdir":  func(ctx context.Context, b box) error { return b.Mkdir(ctx, id, "new/"+within) },
		"write":  func(ctx context.Context, b box) error { return b.Write(ctx, id, "in/"+within+"/x", content(1)) },
		"chmod":  func(ctx context.Context, b box) error { return b.Chmod(ctx, id, "in/"+within, 0o700) },
		"rename": func(ctx context.Context, b box) error { return b.Rename(ctx, id, "in/"+within, "up") },
		"delete": func(ctx context.Context, b box) error { return b.Delete(ctx, id, "in") },
		"remove": func(ctx context.Context, b box) error { return b.Remove(ctx, id) },
		"sweep": func(ctx context.Context, b box) error {
			if err := os.Rename(filepath.Join(b.dir, "in"), filepath.Join(b.dir, ".berth-tmp-"+strings.Repeat("a", 32))); err != nil {
				return err
			}
			return b.Sweep(ctx, id)
		},
	}
	for _, format := range []string{"zip", "tar"} {
		calls["compress "+format] = func(ctx context.Context, b box) error {
			_, err := b.Compress(ctx, id, v1.Compression{Output: "a", Format: format, Paths: []string{"in"}})
			return err
		}
		calls["decompress "+format] = func(ctx context.Context, b box) error {
			return b.Decompress(ctx, id, "a."+format, "new")
		}
		calls["merge "+format] = func(ctx context.Context, b box) error {
			return b.Decompress(ctx, id, "a."+format, ".")
		}
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			top := inMemory(t, "64m")
			for _, depth := range []int{250, 4096} {
				b := newBoxIn(t, top, options())
				require.NoError(t, os.Mkdir(filepath.Join(b.dir, "in"), 0o755))
				deep(t, filepath.Join(b.dir, "in"), "d", 250, 1)
				if kind, format, _ := strings.Cut(name, " "); kind != "compress" && format != "" {
					require.NoError(t, calls["compress "+format](t.Context(), b))
				}
				if depth > 250 {
					require.NoError(t, os.RemoveAll(filepath.Join(b.dir, "in")))
					require.NoError(t, os.Mkdir(filepath.Join(b.dir, "in"), 0o755))
					deep(t, filepath.Join(b.dir, "in"), "d", depth, 1)
				}
				before, most, steps := descriptors(t), 0, 0
				err := call(counting{t.Context(), t, &steps, &most}, b)
				if refused := code(err); depth == 250 || refused != "invalid_request" {
					require.NoError(t, err)
				}
				require.LessOrEqual(t, most-before, mostHandles, "%s, %d deep", name, depth)
				require.Equal(t, before, descriptors(t))
				t.Logf("%d deep: %d handles", depth, most-before)
				require.NoError(t, b.Remove(t.Context(), id))
			}
		})
	}
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
		"volume": {".removing-" + id + "/tree", func(ctx context.Context, b box) error { return b.Remove(ctx, id) }},
		"folder": {id + "/.berth-tmp-*", func(ctx context.Context, b box) error { return b.Delete(ctx, id, "tree") }},
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
