package archiver_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime/volume/archiver"
)

// maxAhead is how many bytes the process may write before the daemon has accounted for them.
const maxAhead = 6 << 20

// newFile returns an empty file.
func newFile(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "archive"))
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// TestFile: the process writes to the file by its handle, which does not show where other files
// are, and reports all that it wrote.
func TestFile(t *testing.T) {
	b := newBox(t, t.TempDir(), archiver.Self)
	large(t, b.dir)
	f := newFile(t)
	var written int64
	got, err := b.Snapshots().Write(t.Context(), id, f, v1.SnapshotOptions{Written: func(n int64) error {
		if written == 0 {
			pids := children(t, os.Getpid())
			require.Len(t, pids, 1)
			to, err := os.Readlink(filepath.Join("/proc", pidText(pids[0]), "fd", "1"))
			require.NoError(t, err)
			require.Equal(t, f.Name(), to)
		}
		written += n
		return nil
	}})
	require.NoError(t, err)
	content, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	sum := sha256.Sum256(content)
	require.Equal(t, "sha256:"+hex.EncodeToString(sum[:]), got.Checksum)
	require.EqualValues(t, len(content), got.Size)
	require.Equal(t, got.Size, written)
	_, err = f.Seek(0, io.SeekStart)
	require.NoError(t, err)
	require.NoError(t, b.Snapshots().Verify(t.Context(), f, v1.SnapshotArchive{Checksum: got.Checksum, Size: got.Size, Bytes: got.Bytes}))
}

// TestFileWaits: the process does not write on while the daemon has not accounted for what it
// wrote, and an error of the daemon ends it.
func TestFileWaits(t *testing.T) {
	for name, w := range map[string]func(t *testing.T) io.Writer{
		"file":   func(t *testing.T) io.Writer { return newFile(t) },
		"stream": func(*testing.T) io.Writer { return &counter{} },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, t.TempDir(), archiver.Self)
			large(t, b.dir)
			to, full := w(t), errors.New("no space")
			reports := 0
			_, err := b.Snapshots().Write(t.Context(), id, to, v1.SnapshotOptions{Written: func(int64) error {
				reports++
				time.Sleep(300 * time.Millisecond)
				return full
			}})
			require.ErrorIs(t, err, full)
			require.Equal(t, 1, reports)
			require.Empty(t, children(t, os.Getpid()))
			require.LessOrEqual(t, sizeOf(t, to), int64(maxAhead))
			require.Empty(t, b.log, "it is no fault")
		})
	}
}

// counter counts bytes.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

func sizeOf(t *testing.T, w io.Writer) int64 {
	t.Helper()
	if c, is := w.(*counter); is {
		return c.n
	}
	info, err := w.(*os.File).Stat()
	require.NoError(t, err)
	return info.Size()
}

// TestFileIsComplete: Write returns an error, and nobody writes to the file any more, when the
// process is killed or the request ends in the middle.
func TestFileIsComplete(t *testing.T) {
	for name, end := range map[string]func(pid int, cancel func()){
		"killed":   func(pid int, _ func()) { _ = syscall.Kill(pid, syscall.SIGKILL) },
		"canceled": func(_ int, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, t.TempDir(), archiver.Self)
			large(t, b.dir)
			f := newFile(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := b.Snapshots().Write(ctx, id, f, v1.SnapshotOptions{Written: func(int64) error {
				for _, pid := range children(t, os.Getpid()) {
					end(pid, cancel)
				}
				return nil
			}})
			require.Error(t, err)
			require.Empty(t, children(t, os.Getpid()))
		})
	}
}

// TestSparseTakesLong: a tree that is read for long and compresses to nothing has many reports
// of its progress, which need no answers.
func TestSparseTakesLong(t *testing.T) {
	many := `i=0; while [ $i -lt 50000 ]; do echo '{"read": 1}'; i=$((i+1)); done >&4; `
	b := newBox(t, t.TempDir(), script(t, many+`printf 12345; echo '{"written": 5, "result": {"Size": 5}}' >&4`))
	var progress int
	_, err := b.Snapshots().Write(t.Context(), id, newFile(t), v1.SnapshotOptions{Progress: func(int64, int64) { progress++ }})
	require.NoError(t, err)
	require.Equal(t, 50_001, progress)
	require.False(t, strings.Contains(b.log.String(), "failed"))
}
