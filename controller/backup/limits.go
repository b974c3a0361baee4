package backup

import (
	"sync"

	v1 "berth/api/v1"
	"berth/store"
)

// checkBytes is how much of an archive is written between two comparisons with the limit of
// its target.
const checkBytes = 64 << 20

// space bounds the bytes of the archives of each target: of those that are stored, and of
// those that jobs write. It is safe for concurrent use.
type space struct {
	Options

	mu      sync.Mutex
	begun   int
	written map[string]*archive // by id of the backup, until its size is stored or it is gone
}

// archive is the archive of a job.
type archive struct {
	target         v1.Target
	number         int // in the order in which they began
	bytes, checked int64
}

func newSpace(o Options) *space { return &space{Options: o, written: map[string]*archive{}} }

// check returns the code BackupsFull if n more bytes do not fit into a target. For the archive of
// the backup id, those that began later do not count: of two that do not fit together the
// first is completed. For a moment an archive counts twice, after its size was stored: a backup at the limit may fail.
func (s *space) check(to v1.Target, id string, n int64) error {
	limit := s.Limits().MaxSizeOf(to)
	if limit <= 0 {
		return nil
	}
	used := n + store.BackupTotals(s.Store.Read())[to].Bytes
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.written[id]
	for _, a := range s.written {
		if a.target == to && (own == nil || a.number <= own.number) {
			used += a.bytes
		}
	}
	if used > limit {
		return v1.BackupsFullError(to)
	}
	return nil
}

// wrote counts n more bytes of the archive of a backup. It returns why no more may be written.
func (s *space) wrote(b v1.Backup, n int64) error {
	if err := s.Free(b.Spec.Target); err != nil {
		return err
	}
	if !s.count(b, n) {
		return nil
	}
	return s.check(b.Spec.Target, b.Meta.ID, 0)
}

// count counts n more bytes, and reports whether a check is due.
func (s *space) count(b v1.Backup, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.written[b.Meta.ID]
	if a == nil {
		s.begun++
		a = &archive{target: b.Spec.Target, number: s.begun}
		s.written[b.Meta.ID] = a
	}
	if a.bytes += n; a.bytes-a.checked < checkBytes {
		return false
	}
	a.checked = a.bytes
	return true
}

// release forgets the archive of a backup: its size is stored, or its bytes are gone.
func (s *space) release(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.written, id)
}
