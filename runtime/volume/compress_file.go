package volume

import (
	"os"

	"berth/runtime/volume/quota"
)

// archiveFile is the file of a new archive. It counts the bytes and takes them from
// the operation's reservation. It keeps its first error.
type archiveFile struct {
	f           *os.File
	reservation *quota.Reservation
	ctxErr      func() error
	n           int64
	disk        flusher
	err         error
}

func (s *archiveFile) Write(p []byte) (int, error) {
	if s.err == nil {
		s.err = s.ctxErr()
	}
	if s.err != nil {
		return 0, s.err
	}
	if grown := quota.RoundUp(s.n+int64(len(p))) - quota.RoundUp(s.n); grown > 0 {
		s.err = s.reservation.Grow(grown)
	}
	if s.err == nil {
		_, s.err = s.f.Write(p)
	}
	if s.err != nil {
		return 0, s.err
	}
	s.n += int64(len(p))
	s.disk.wrote(len(p))
	return len(p), nil
}
