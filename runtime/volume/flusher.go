package volume

import (
	"os"

	"golang.org/x/sys/unix"
)

// flushBytes is how many bytes are flushed to disk at a time.
const flushBytes = 4 << 20

// flusher asks the kernel to write a file to the disk while its content still arrives,
// so that the fsync at its end has little left to wait for.
type flusher struct {
	f          *os.File
	n, flushed int64
}

// wrote records that n bytes were appended to the file. What it asks for is a hint that
// does not block. Its errors are those of the fsync.
func (d *flusher) wrote(n int) {
	if d.n += int64(n); d.n-d.flushed >= flushBytes {
		_ = unix.SyncFileRange(int(d.f.Fd()), d.flushed, d.n-d.flushed, unix.SYNC_FILE_RANGE_WRITE)
		d.flushed = d.n
	}
}
