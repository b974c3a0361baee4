package snapshot

import (
	"errors"
	"io"
	"sync"
	"syscall"

	v1 "berth/api/v1"
	"berth/runtime/volume/walk"
)

// damaged returns the refusal of an archive that Write did not produce.
func damaged(format string, args ...any) error {
	return v1.Errorf(v1.InvalidArchive, "Backup is damaged: "+format, args...)
}

// skipReason returns why an entry is left out of the archive whose read failed, or ""
// if the error is not about that entry.
func skipReason(err error) string {
	switch {
	case is(err, syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP, syscall.EINVAL, syscall.ENXIO, syscall.ESTALE, walk.ErrNotRegular):
		return v1.SkippedRemoved
	case is(err, syscall.EACCES, syscall.EPERM, syscall.EIO, syscall.EBUSY, syscall.EOPNOTSUPP, syscall.EOVERFLOW, syscall.EUCLEAN, syscall.EBADMSG):
		return v1.SkippedUnreadable
	}
	return ""
}

func is(err error, targets ...error) bool {
	for _, t := range targets {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}

// source reads the archive until the context ends, and no more than a number of bytes.
// It keeps its first error, so that a failed read is not reported as a damaged
// archive. The decompressor reads from goroutines of its own.
type source struct {
	r      io.Reader
	ctxErr func() error
	left   int64     // bytes that the archive may still have
	hash   io.Writer // never fails

	mu  sync.Mutex
	err error
}

func (s *source) Read(p []byte) (int, error) {
	err := s.ctxErr()
	n := 0
	if err == nil {
		n, err = s.r.Read(p)
	}
	s.left -= int64(n)
	_, _ = s.hash.Write(p[:n])
	switch {
	case s.left < 0:
		err = s.fail(damaged("it is larger than it was"))
	case err != nil && !errors.Is(err, io.EOF):
		err = s.fail(err)
	}
	return n, err
}

// fail records err, which decides over later ones, and returns it.
func (s *source) fail(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	return err
}

// failed returns the first error.
func (s *source) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
