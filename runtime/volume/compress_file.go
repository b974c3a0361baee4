package volume

import (
	"os"
)

// archiveFile is the file of a new archive. It counts the bytes and takes them from
// the operation's reservation. It keeps its first error.
type archiveFile struct {
	f           *os.File
	reservation *reservation
	ctxErr      func() error
	n           int64
	err         error
}

func (s *archiveFile) Write(p []byte) (int, error) {
	if s.err == nil {
		s.err = s.ctxErr()
	}
	if s.err != nil {
		return 0, s.err
	}
	if grown := roundUp(s.n+int64(len(p))) - roundUp(s.n); grown > 0 {
		s.err = s.reservation.Grow(grown)
	}
	if s.err == nil {
		_, s.err = s.f.Write(p)
	}
	if s.err != nil {
		return 0, s.err
	}
	s.n += int64(len(p))
	return len(p), nil
}
