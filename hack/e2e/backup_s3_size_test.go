package e2e_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// fillVolume writes files of 64 MiB without holes, a quarter of them noise and the rest
// easy to compress.
func fillVolume(t *testing.T, dir string, size int64) {
	t.Helper()
	noise := rand.NewChaCha8([32]byte{2})
	block := make([]byte, 64<<10)
	for i := range block {
		block[i] = "berth\n"[i%6]
	}
	for i := range size / (64 << 20) {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("large%d", i)))
		require.NoError(t, err)
		for range 64 << 20 / len(block) {
			_, _ = noise.Read(block[:16<<10])
			_, err := f.Write(block)
			require.NoError(t, err)
		}
		require.NoError(t, f.Close())
	}
}

// diskUse returns the bytes on disk of the files below a daemon's directory, except for
// one, and of all other files that the daemon has open, those without a name included.
func diskUse(t *testing.T, b *berthtest.Berth, except string) (bytes int64) {
	t.Helper()
	seen := map[uint64]bool{}
	add := func(info fs.FileInfo, err error) {
		if err != nil || !info.Mode().IsRegular() {
			return // it was closed or removed meanwhile
		}
		if st := info.Sys().(*syscall.Stat_t); !seen[st.Ino] {
			seen[st.Ino] = true
			bytes += st.Blocks * 512
		}
	}
	_ = filepath.WalkDir(b.Data, func(path string, d fs.DirEntry, err error) error {
		if path == except {
			return fs.SkipDir
		}
		if err == nil {
			add(d.Info())
		}
		return nil
	})
	handles := fmt.Sprintf("/proc/%d/fd", b.Pid())
	list, err := os.ReadDir(handles)
	require.NoError(t, err)
	for _, h := range list {
		path := filepath.Join(handles, h.Name())
		if to, err := os.Readlink(path); err == nil && filepath.Dir(to) != except {
			add(os.Stat(path))
		}
	}
	return bytes
}

// archiverUse returns the memory of the processes that write archives, without the pages of
// the program, which they share with the daemon, and the size of their files without a name.
func archiverUse(t *testing.T, b *berthtest.Berth) (memory, disk int64) {
	t.Helper()
	for _, pid := range archivers(t, b) {
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid)); err == nil {
			var size, pages, shared int64
			_, _ = fmt.Sscan(string(text), &size, &pages, &shared) // nothing of one that has just ended
			memory += (pages - shared) * int64(os.Getpagesize())
		}
		handles, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, h := range handles {
			to, _ := os.Readlink(h)
			if info, err := os.Stat(h); err == nil && strings.HasSuffix(to, " (deleted)") {
				disk += info.Size()
			}
		}
	}
	return memory, disk
}

// TestBackupToS3InLittleSpace: a backup of a large volume to S3 takes at most 64 MiB
// more memory, that of the process that writes the archive included, and no disk: the
// archive is never staged. BERTH_LONG makes the volume 10 GiB.
func TestBackupToS3InLittleSpace(t *testing.T) {
	size, limit := int64(256<<20), 5*time.Minute
	if os.Getenv("BERTH_LONG") != "" {
		size, limit = 10<<30, time.Hour
	}
	b, s3, volume, dir := startWithS3(t)
	fillVolume(t, dir, size)
	memory, disk := resident(t, b.Pid()), diskUse(t, b, dir)
	mostMemory, mostDisk, separate := memory, disk, false
	id := startBackup(t, b, volume, map[string]any{"target": "s3"})
	var s backupState
	berthtest.Until(t, limit, "the backup finishes", func() bool {
		more, open := archiverUse(t, b)
		mostMemory, mostDisk = max(mostMemory, resident(t, b.Pid())+more), max(mostDisk, diskUse(t, b, dir)+open)
		separate = separate || more > 0
		s = backupState{}
		b.Get(t, "/backups/"+id, &s)
		return finished(s.State)
	})
	require.Equal(t, "completed", s.State, s.Message)
	require.True(t, separate, "a process of its own writes the archive")
	require.Equal(t, []string{"node1/" + id + ".tar.zst"}, s3.Objects(t))
	require.Greater(t, s.Size, size/4)
	t.Logf("%d MiB: %d KiB more memory, %d KiB more disk, archive of %d MiB", size>>20, (mostMemory-memory)>>10, (mostDisk-disk)>>10, s.Size>>20)
	require.LessOrEqual(t, mostMemory-memory, int64(64<<20))
	require.LessOrEqual(t, mostDisk-disk, int64(8<<20), "the store grows by a few records")
	require.Empty(t, s3.Uploads(t))
}
