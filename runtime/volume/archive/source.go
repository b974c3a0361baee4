package archive

import (
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"

	v1 "berth/api/v1"
)

// source reads the archive until the context ends. It keeps the first error, so
// that a failed read is not reported as a damaged archive.
type source struct {
	r      io.Reader   // from the first byte on
	whole  io.ReaderAt // nil: the archive arrives
	ctxErr func() error
	size   int64 // bytes; of one that arrives, those that were read
	err    error
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	if err := s.ctxErr(); err != nil {
		return 0, s.fail(err)
	}
	n, err := s.r.Read(p)
	if s.whole == nil {
		s.size += int64(n)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return n, s.fail(err)
	}
	return n, err
}

// ReadAt returns io.EOF for an offset that is not in the archive: offsets come from
// the archive itself.
func (s *source) ReadAt(p []byte, off int64) (int, error) {
	if err := s.ctxErr(); err != nil {
		return 0, s.fail(err)
	}
	if off < 0 || off >= s.size {
		return 0, io.EOF
	}
	n, err := s.whole.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, s.fail(err)
	}
	return n, err
}

// fail records err, which is not a fault of the archive, and returns it.
func (s *source) fail(err error) error {
	if s.err == nil {
		s.err = err
	}
	return err
}

// cause returns the error of the source that led to err, which a format's reader
// returned. Without one, the archive is damaged.
func (s *source) cause(err error) error {
	if s.err != nil {
		return s.err
	}
	var known *v1.Error
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return invalid("Archive needs more than %d MiB of memory to extract: compress it with zstd -19 or less, without --long", zstdWindow>>20)
	}
	return invalid("Archive is damaged: %v", err)
}
