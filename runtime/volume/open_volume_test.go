package volume_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

// after is a context that is canceled after n calls of Err, as if the client left in
// the middle of an operation.
type after struct {
	context.Context
	n atomic.Int64
}

func (a *after) Err() error {
	if a.n.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestContextCancelled cancels every long operation at each of its first steps, and
// at later ones.
func TestContextCancelled(t *testing.T) {
	b := newBox(t, options())
	src := filepath.Join(b.dir, "src")
	require.NoError(t, os.Mkdir(src, 0o755))
	plant(t, src, 60)
	calls := map[string]func(ctx context.Context) error{
		"copy":   func(ctx context.Context) error { return b.Copy(ctx, id, "src", "out") },
		"search": func(ctx context.Context) error { _, err := b.Search(ctx, id, ".", "f"); return err },
		"list":   func(ctx context.Context) error { _, err := b.List(ctx, id, "src"); return err },
		"write":  func(ctx context.Context) error { return b.Write(ctx, id, "out", content(1<<20)) },
	}
	for _, format := range v1.Formats() {
		a, err := b.Compress(t.Context(), id, v1.Compression{Format: format, Output: "in", Folder: "src"})
		require.NoError(t, err)
		require.NoError(t, os.Rename(filepath.Join(b.dir, a.Path), filepath.Join(b.dir, "in."+format)))
		calls["compress "+format] = func(ctx context.Context) error {
			_, err := b.Compress(ctx, id, v1.Compression{Format: format, Output: "out", Folder: "src"})
			return err
		}
		calls["decompress "+format] = func(ctx context.Context) error { return b.Decompress(ctx, id, "in."+format, "out") }
	}
	before := b.names(t)
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			require.Greater(t, leave(t, call, before, b), 0)
			for _, format := range v1.Formats() {
				require.NoError(t, os.RemoveAll(filepath.Join(b.dir, "src/out."+format)))
			}
			require.NoError(t, os.RemoveAll(filepath.Join(b.dir, "out")))
		})
	}
}

// leave returns the number of steps at which call was canceled.
func leave(t *testing.T, call func(context.Context) error, before []string, b box) (left int) {
	for n := int64(0); n < 100_000; n = n*2 + 1 {
		ctx := &after{Context: t.Context()}
		ctx.n.Store(n)
		if err := call(ctx); err == nil {
			return left
		} else {
			require.ErrorIs(t, err, context.Canceled)
		}
		left++
		require.Equal(t, before, b.names(t), "after %d", n)
	}
	t.Fatal("it never came to its end")
	return left
}

// TestOpenWhileVolumeIsSwapped swaps the volume's directory and a link to another one while
// volumes are opened: none is opened through the link.
func TestOpenWhileVolumeIsSwapped(t *testing.T) {
	b := newBox(t, options())
	link := filepath.Join(filepath.Dir(b.dir), "link")
	require.NoError(t, os.Symlink(b.outside, link))
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, b.dir, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			}
		}
	}()
	opened, refused := 0, 0
	var wrong []error
	for n := 0; n < 5000 || opened == 0 || refused == 0; n++ {
		_, err := b.Lstat(t.Context(), id, "secret")
		switch {
		case errors.Is(err, &v1.Error{Code: v1.PathNotFound}):
			opened++
		case errors.Is(err, v1.ErrNotADirectory):
			refused++
		default:
			wrong = append(wrong, err)
		}
	}
	close(done)
	<-ended
	require.Empty(t, wrong, "nil: the link's file was found")
}
