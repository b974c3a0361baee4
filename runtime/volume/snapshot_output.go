package volume

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// reportBytes is after how many bytes of an archive they are reported.
const reportBytes = 1 << 20

// output passes an archive on, and computes its size and its checksum.
type output struct {
	w        io.Writer
	disk     flusher             // of w, if it is a regular file
	written  func(n int64) error // may be nil
	hash     hash.Hash
	size     int64
	reported int64 // bytes that written was called with
}

func newOutput(w io.Writer, written func(n int64) error) *output {
	o := &output{w: w, written: written, hash: sha256.New()}
	if f, is := w.(*os.File); is {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			o.disk.f = f
		}
	}
	return o
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.hash.Write(p)
	n, err := o.w.Write(p)
	o.size += int64(n)
	if o.disk.f != nil {
		o.flush(n)
	}
	if err == nil && o.size-o.reported >= reportBytes {
		err = o.report()
	}
	return n, err
}

// report calls written with the bytes that were written since the last report.
func (o *output) report() error {
	n := o.size - o.reported
	o.reported = o.size
	if o.written == nil || n == 0 {
		return nil
	}
	return o.written(n)
}

// flush lets the disk write n more bytes of the file, and the kernel forget those that it
// has written: both are hints.
func (o *output) flush(n int) {
	before := o.disk.flushed
	if o.disk.wrote(n); o.disk.flushed > before {
		_ = unix.Fadvise(int(o.disk.f.Fd()), 0, before, unix.FADV_DONTNEED)
	}
}

// checksum returns that of a complete archive.
func (o *output) checksum() string { return "sha256:" + hex.EncodeToString(o.hash.Sum(nil)) }
