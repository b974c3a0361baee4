package edge

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

// Limits on spooled content.
const (
	spoolMemory = 256 << 10 // bytes kept in memory; more go to a file
	spoolStep   = 1 << 20   // bytes of disk space that are reserved at a time
)

// spool stores the content of a file until the rest of its JSON body has arrived,
// which may be invalid or hold the path. Close frees memory and file.
type spool struct {
	dir     string
	limit   int64             // bytes of content
	reserve func(int64) error // reserves bytes of disk space

	memory   bytes.Buffer
	file     *os.File // unlinked; nil: all content is in memory
	buffered *bufio.Writer
	size     int64
	reserved int64
}

// Write appends to the content. It returns errTooLarge beyond the limit, and
// v1.ErrDiskFull if the disk has too little free space.
func (s *spool) Write(p []byte) (int, error) {
	s.size += int64(len(p))
	if s.size > s.limit {
		return 0, errTooLarge
	}
	if s.file == nil && s.memory.Len()+len(p) <= spoolMemory {
		return s.memory.Write(p)
	}
	if err := s.grow(); err != nil {
		return 0, spoolError(err)
	}
	n, err := s.buffered.Write(p)
	return n, spoolError(err)
}

// grow creates the file if there is none, and reserves disk space for the content.
func (s *spool) grow() error {
	if s.file == nil {
		file, err := unnamed(s.dir)
		if err != nil {
			return err
		}
		s.file, s.buffered = file, bufio.NewWriterSize(file, 64<<10)
		if _, err := s.memory.WriteTo(s.buffered); err != nil {
			return err
		}
	}
	if s.size <= s.reserved {
		return nil
	}
	var disk unix.Statfs_t
	if err := unix.Fstatfs(int(s.file.Fd()), &disk); err != nil {
		return err
	}
	if block := int64(disk.Bsize); int64(disk.Bavail)*block < v1.DiskReserve(int64(disk.Blocks)*block)+spoolStep {
		return v1.ErrDiskFull
	}
	if err := s.reserve(spoolStep); err != nil {
		return err
	}
	s.reserved += spoolStep
	return nil
}

// unnamed creates a file without a name, which the kernel removes when it is
// closed, even if berth is killed.
func unnamed(dir string) (*os.File, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	file, err := os.OpenFile(dir, unix.O_TMPFILE|os.O_RDWR, 0o600)
	if err == nil {
		return file, nil
	}
	file, err = os.CreateTemp(dir, ".spool-*") // the file system has no O_TMPFILE
	if err != nil {
		return nil, err
	}
	return file, os.Remove(file.Name())
}

func spoolError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return v1.ErrDiskFull
	}
	return err
}

// reset discards the content.
func (s *spool) reset() error {
	s.size = 0
	s.memory.Reset()
	if s.file == nil {
		return nil
	}
	s.buffered.Reset(s.file)
	_, err := s.file.Seek(0, io.SeekStart)
	return errors.Join(err, s.file.Truncate(0))
}

// reader returns a reader of the content from its start.
func (s *spool) reader() (io.Reader, error) {
	if s.file == nil {
		return bytes.NewReader(s.memory.Bytes()), nil
	}
	if err := s.buffered.Flush(); err != nil {
		return nil, spoolError(err)
	}
	_, err := s.file.Seek(0, io.SeekStart)
	return s.file, err
}

// Close discards the content. The caller releases the reserved disk space.
func (s *spool) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
