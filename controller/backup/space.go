package backup

import (
	"errors"
	"maps"
	"slices"
	"sync"

	v1 "berth/api/v1"
	"berth/store"
)

// space bounds the bytes of the archives of each target: of those that are stored, and of
// those that jobs write. It is safe for concurrent use.
type space struct {
	store  *store.Store
	limits func() v1.BackupsConfig
	free   func(v1.Target) error // Options.Free

	mu       sync.Mutex
	written  map[string]archive // by id of the backup, until its size is stored or it is gone
	releases uint64             // of archives
}

// archive is the archive of a job.
type archive struct {
	target v1.Target
	bytes  int64
}

func newSpace(o Options) *space {
	return &space{store: o.Store, limits: o.Limits, free: o.Free, written: map[string]archive{}}
}

// check returns the code BackupsFull if the target of a backup has no space left.
func (s *space) check(b v1.Backup) error { return s.reserve(b, 1, 0) }

// wrote counts n more bytes of the archive of a backup. It returns why no more may be written.
func (s *space) wrote(b v1.Backup, n int64) error {
	return errors.Join(s.free(b.Spec.Target), s.reserve(b, n, n))
}

// reserve adds written bytes to the archive of a backup, or returns the code BackupsFull if n
// bytes do not fit into its target.
func (s *space) reserve(b v1.Backup, n, written int64) error {
	for {
		total, release, err := s.stored(b.Spec.Target)
		if err != nil {
			return err
		}
		if fits, known := s.add(b, n, written, total, release); known {
			return fits
		}
	}
}

// stored is what a target has, as one view of the store shows it.
type stored struct {
	bytes int64           // of its archives
	ids   map[string]bool // backups in written whose size is part of bytes
}

// stored returns what a target has, and the number of releases before it was read.
func (s *space) stored(t v1.Target) (total stored, releases uint64, err error) {
	s.mu.Lock()
	releases = s.releases
	ids := slices.Collect(maps.Keys(s.written))
	s.mu.Unlock()
	total.ids = map[string]bool{}
	err = s.store.View(func(tx *store.Tx) error {
		sum, err := store.BackupsIn(tx, t)
		total.bytes = sum.Bytes
		for _, id := range ids {
			bytes, failed := store.BackupBytes(tx, id)
			total.ids[id], err = bytes > 0, errors.Join(err, failed)
		}
		return err
	})
	return total, releases, err
}

// add is reserve, for what the target has. It returns false if an archive was released
// since: that one may have become part of the total.
func (s *space) add(b v1.Backup, n, written int64, total stored, releases uint64) (fits error, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if releases != s.releases {
		return nil, false
	}
	used := total.bytes + n
	for id, a := range s.written {
		if a.target == b.Spec.Target && !total.ids[id] {
			used += a.bytes
		}
	}
	if limit := s.limits().MaxSizeOf(b.Spec.Target); limit > 0 && used > limit {
		return v1.BackupsFullError(b.Spec.Target), true
	}
	if written > 0 {
		s.written[b.Meta.ID] = archive{b.Spec.Target, s.written[b.Meta.ID].bytes + written}
	}
	return nil, true
}

// release forgets the archive of a backup: its size is stored, or its bytes are gone.
func (s *space) release(id string) {
	s.mu.Lock()
	delete(s.written, id)
	s.releases++
	s.mu.Unlock()
}
