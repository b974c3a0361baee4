package snapshot

import (
	"bytes"
	"errors"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"
)

// spoolMemory is how many bytes a spool keeps in memory.
const spoolMemory = 4 << 20

// spool keeps the manifest, compressed, until the end of the archive: in memory, or in
// a file without a name, which ends with the process.
type spool struct {
	dir  string // of the file
	z    *zstd.Encoder
	mem  bytes.Buffer
	file *os.File
	size int64 // bytes that were written, uncompressed
}

func newSpool(dir string) (*spool, error) {
	s := &spool{dir: dir}
	z, err := zstd.NewWriter(spoolOutput{s}, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(frameBytes), zstd.WithLowerEncoderMem(true))
	s.z = z
	return s, err
}

// Write appends p.
func (s *spool) Write(p []byte) (int, error) {
	s.size += int64(len(p))
	return s.z.Write(p)
}

// copyTo writes everything to w. Nothing may be written afterwards.
func (s *spool) copyTo(w io.Writer) error {
	if err := s.z.Close(); err != nil {
		return err
	}
	var r io.Reader = &s.mem
	if s.file != nil {
		if _, err := s.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		r = s.file
	}
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer d.Close()
	_, err = io.Copy(w, d)
	return err
}

// close frees what the spool holds.
func (s *spool) close() {
	s.z.Reset(nil)
	if s.file != nil {
		s.file.Close()
	}
}

// spoolOutput receives the compressed bytes.
type spoolOutput struct{ s *spool }

func (o spoolOutput) Write(p []byte) (int, error) {
	s := o.s
	if s.file == nil && s.mem.Len()+len(p) <= spoolMemory {
		return s.mem.Write(p)
	}
	if s.file == nil {
		fd, err := unix.Open(s.dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return 0, &os.PathError{Op: "open", Path: "a temporary file", Err: err}
		}
		s.file = os.NewFile(uintptr(fd), "manifest")
		_, err = s.file.Write(s.mem.Bytes())
		s.mem = bytes.Buffer{}
		if err != nil {
			return 0, errors.Join(err, s.file.Close())
		}
	}
	return s.file.Write(p)
}
