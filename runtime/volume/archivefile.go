package volume

import (
	"os"

	"golang.org/x/sys/unix"

	"berth/runtime/volume/quota"
)

// archiveFile is the file of a new archive. It counts the bytes and takes them from
// the operation's reservation. It keeps its first error.
type archiveFile struct {
	f           *os.File
	reservation *quota.Reservation
	ctxErr      func() error
	n           int64
	flushed     int64 // bytes that the kernel was asked to write to disk
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
	if s.n-s.flushed >= flushBytes {
		// A hint that does not block. It leaves little for the final fsync.
		_ = unix.SyncFileRange(int(s.f.Fd()), s.flushed, s.n-s.flushed, unix.SYNC_FILE_RANGE_WRITE)
		s.flushed = s.n
	}
	return len(p), nil
}

// flushBytes is how many bytes are flushed to disk at a time.
const flushBytes = 4 << 20
