package volume_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// mostHandles is how many handles one operation may hold: two for each of 256 levels, in both trees
// of a copy, and a few.
const mostHandles = 2*2*256 + 24

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
		"delete": func(ctx context.Context, b box) error { return b.Delete(ctx, id, "in", nil) },
		"remove": func(ctx context.Context, b box) error { return b.Remove(ctx, id) },
		"sweep": func(ctx context.Context, b box) error {
			if err := errors.Join(os.MkdirAll(b.temps(), 0o700), os.Rename(filepath.Join(b.dir, "in"), filepath.Join(b.temps(), "left"))); err != nil {
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
