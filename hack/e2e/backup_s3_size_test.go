package e2e_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
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

// TestBackupToS3InLittleSpace: a backup of a large volume to S3 takes one part and at most 64 MiB
// more of memory, and no disk: the archive is never staged. BERTH_LONG makes the volume 10 GiB.
func TestBackupToS3InLittleSpace(t *testing.T) {
	t.Parallel()
	size, limit := int64(256<<20), 5*time.Minute
	if os.Getenv("BERTH_LONG") != "" {
		size, limit = 10<<30, time.Hour
	}
	b, s3, volume, dir := startWithS3(t)
	fillVolume(t, dir, size)
	memory, disk := resident(t, b.Pid()), diskUse(t, b, dir)
	mostMemory, mostDisk := memory, disk
	id := startBackup(t, b, volume, map[string]any{"target": "s3"})
	var s backupState
	berthtest.Until(t, limit, "the backup finishes", func() bool {
		mostMemory, mostDisk = max(mostMemory, resident(t, b.Pid())), max(mostDisk, diskUse(t, b, dir))
		s = backupState{}
		b.Get(t, "/backups/"+id, &s)
		return finished(s.State)
	})
	require.Equal(t, "completed", s.State, s.Message)
	require.Equal(t, []string{"node1/" + id + ".tar.zst"}, s3.Objects(t))
	require.Greater(t, s.Size, size/4)
	t.Logf("%d MiB: %d KiB more memory, %d KiB more disk, archive of %d MiB", size>>20, (mostMemory-memory)>>10, (mostDisk-disk)>>10, s.Size>>20)
	require.LessOrEqual(t, mostMemory-memory, int64(128<<20))
	require.LessOrEqual(t, mostDisk-disk, int64(8<<20), "the store grows by a few records")
	require.Empty(t, s3.Uploads(t))
}
