package volume_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

// raced waits until so many swaps and calls are done, however long a busy host
// takes; BERTH_LONG requires many more of them.
func raced(t *testing.T, swaps, calls *atomic.Int64) {
	t.Helper()
	most := int64(1000)
	if os.Getenv("BERTH_LONG") != "" {
		most = 50_000
	}
	require.Eventually(t, func() bool { return swaps.Load() > most && calls.Load() > most }, 5*time.Minute, 10*time.Millisecond)
}

// TestFolderSwapRace swaps a folder and a link to outside as fast as a tenant can,
// under 8 clients that use every path field. Files outside must neither change nor
// be readable.
func TestFolderSwapRace(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "dir/file", "mine")
	b.put(t, "swap/secret", "inner")
	b.put(t, "swap/folder/secret", "inner")
	run(t, b.dir, "sh", "-c", "mkdir x && echo new > x/f && tar -cf a.tar x/f && cp a.tar swap/a.tar && rm -r x")
	run(t, b.outside, "cp", filepath.Join(b.dir, "a.tar"), "a.tar")
	require.NoError(t, os.Symlink("../../outside", filepath.Join(b.dir, "other")))
	outside := tree(t, b.outside, false)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	var swaps, calls, leaks atomic.Int64
	wg.Go(func() {
		dir, err := os.Open(b.dir)
		if err != nil {
			return
		}
		defer dir.Close()
		for ctx.Err() == nil {
			if unix.Renameat2(int(dir.Fd()), "swap", int(dir.Fd()), "other", unix.RENAME_EXCHANGE) == nil {
				swaps.Add(1)
			}
		}
	})
	for seed := range uint64(8) {
		wg.Go(func() { client(ctx, b, rand.New(rand.NewPCG(seed, 0)), &calls, &leaks) })
	}
	raced(t, &swaps, &calls)
	cancel()
	wg.Wait()
	t.Logf("%d swaps, %d calls, %d leaks", swaps.Load(), calls.Load(), leaks.Load())
	require.Zero(t, leaks.Load())
	require.Empty(t, cmp.Diff(outside, tree(t, b.outside, false)))
	for name, what := range tree(t, b.dir, false) {
		require.NotContains(t, what, "6 bytes, 5fd8dbf6", "the secret came in at %s", name)
	}
}

// client calls every path field at random, and searches the results for the secret.
func client(ctx context.Context, b box, r *rand.Rand, calls, leaks *atomic.Int64) {
	paths := []string{"swap/secret", "swap/folder/secret", "swap/new", "swap", "swap/folder", "swap/a.tar", "swap/new/deep/er"}
	for ctx.Err() == nil {
		p := paths[r.IntN(len(paths))]
		f := fields[r.IntN(len(fields))]
		calls.Add(1)
		switch f.name {
		case "delete", "rename source":
			continue // they would take the folder away for good
		case "open":
			leaks.Add(leak(ctx, b, p))
		default:
			_ = f.call(ctx, b, p)
		}
		_ = b.Delete(ctx, id, "taken", nil)
		_ = b.Delete(ctx, id, "taken.tar.gz", nil)
	}
}

// leak returns 1 if the secret can be read.
func leak(ctx context.Context, b box, p string) int64 {
	file, err := b.Open(ctx, id, p)
	if err != nil {
		return 0
	}
	defer file.Close()
	data, _ := io.ReadAll(file)
	if strings.Contains(string(data), "secret") {
		return 1
	}
	return 0
}

// TestEntrySwapRace swaps a file, a link to outside and a FIFO under readers, archives
// and copies.
func TestEntrySwapRace(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "d/entry", "inner")
	require.NoError(t, os.Symlink("../../../outside/secret", filepath.Join(b.dir, "d/link")))
	require.NoError(t, unix.Mkfifo(filepath.Join(b.dir, "d/fifo"), 0o666))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	var swaps, calls, leaks atomic.Int64
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			other := []string{"d/link", "d/fifo"}[i%2]
			if unix.Renameat2(unix.AT_FDCWD, filepath.Join(b.dir, "d/entry"), unix.AT_FDCWD, filepath.Join(b.dir, other), unix.RENAME_EXCHANGE) == nil {
				swaps.Add(1)
			}
		}
	})
	for n := range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				leaks.Add(readers(ctx, b, fmt.Sprint("out", n)))
				calls.Add(5)
			}
		})
	}
	raced(t, &swaps, &calls)
	cancel()
	wg.Wait()
	t.Logf("%d swaps, %d calls, %d leaks", swaps.Load(), calls.Load(), leaks.Load())
	require.Zero(t, leaks.Load())
	for name, what := range tree(t, b.dir, false) {
		require.NotContains(t, what, "6 bytes, 5fd8dbf6", "the secret came in at %s", name)
	}
}

// readers reads the entry, copies its folder and packs it, and counts how often
// the result contains the secret.
func readers(ctx context.Context, b box, name string) (leaks int64) {
	leaks += leak(ctx, b, "d/entry")
	_ = b.Copy(ctx, id, "d", name)
	leaks += leak(ctx, b, name+"/entry")
	if a, err := b.Compress(ctx, id, v1.Compression{Output: name, Folder: "d", Format: "tar"}); err == nil {
		leaks += leak(ctx, b, a.Path)
		_ = b.Delete(ctx, id, a.Path, nil)
	}
	_ = b.Delete(ctx, id, name, nil)
	return leaks
}
