package volume_test

import (
	"archive/tar"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

// work returns the CPU time that call takes in this goroutine.
func work(t *testing.T, call func() error) time.Duration {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() time.Duration {
		var u unix.Rusage
		require.NoError(t, unix.Getrusage(unix.RUSAGE_THREAD, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	require.NoError(t, call())
	return used() - before
}

// TestWorkOfDeepPaths: a path whose first half exists takes no time that is quadratic to its depth.
func TestWorkOfDeepPaths(t *testing.T) {
	const levels = 1000
	there, missing := strings.Repeat("d/", levels), strings.TrimSuffix(strings.Repeat("m/", levels), "/")
	calls := map[string]func(b box) error{
		"mkdir": func(b box) error { return b.Mkdir(t.Context(), id, there+missing) },
		"write": func(b box) error { return b.Write(t.Context(), id, there+missing, content(1)) },
		"copy":  func(b box) error { return b.Copy(t.Context(), id, "one", there+missing) },
		"decompress": func(b box) error {
			_, err := b.Manager.Decompress(t.Context(), id, v1.Decompression{Archive: "one.tar", Destination: there + missing})
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			b := newBoxIn(t, inMemory(t, "64m"), options())
			b.put(t, "one", "1")
			run(t, b.dir, "tar", "-cf", "one.tar", "one")
			deep(t, b.dir, "d", levels, 1)
			took := work(t, func() error { return call(b) })
			require.Less(t, took, 700*time.Millisecond)
			t.Log(took)
		})
	}
}

// TestLongChainOfLinks: each link of a chain makes the path longer that is looked up.
func TestLongChainOfLinks(t *testing.T) {
	b := newBoxIn(t, inMemory(t, "64m"), options())
	const levels, links = 900, 3
	deep(t, b.dir, "d", levels*links, 1)
	down := strings.Repeat("d/", levels)
	for i := range links {
		require.NoError(t, os.Symlink(down+"l", filepath.Join(b.dir, strings.Repeat(down, i), "l")))
	}
	require.True(t, b.Write(t.Context(), id, "l", content(1)) == v1.ErrInvalidPath)
}

// scattered writes a tar whose entries lie by turns in two folders that are depth levels deep.
func scattered(t *testing.T, b box, entries, depth int) {
	t.Helper()
	f, err := os.Create(filepath.Join(b.dir, "a.tar"))
	require.NoError(t, err)
	w := tar.NewWriter(f)
	for i := range entries {
		name := strings.Repeat([]string{"a/", "b/"}[i%2], depth) + fmt.Sprint("f", i%8)
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Format: tar.FormatGNU}))
	}
	require.NoError(t, errors.Join(w.Close(), f.Close()))
}

// TestScatteredArchive: an archive whose entries lie in deep folders by turns enters these again for
// each entry.
func TestScatteredArchive(t *testing.T) {
	t.Run("is bounded", func(t *testing.T) {
		opt := options()
		opt.Limits.Entries = 100
		b := newBox(t, opt)
		scattered(t, b, 10, 9)
		require.NoError(t, b.Decompress(t.Context(), id, "a.tar", "new"))
		scattered(t, b, 20, 9)
		require.ErrorContains(t, b.Decompress(t.Context(), id, "a.tar", "new"), "more than 100 times")
		noTemps(t, b)
	})
	t.Run("over a tree", func(t *testing.T) {
		b := newBoxIn(t, inMemory(t, "64m"), volume.Options{UID: -1, GID: -1})
		scattered(t, b, 60, 250)
		extract := func() error { return b.Decompress(t.Context(), id, "a.tar", ".") }
		first := work(t, extract)
		second := work(t, extract)
		t.Log(first, second)
		require.Less(t, second, 3*first, "the folders of the volume are not looked up by their whole paths")
	})
}
