package store

import (
	"fmt"
	"time"

	v1 "berth/api/v1"
	"berth/store/kv"
)

// repairEvery is the time between two attempts to open a failed store again.
const repairEvery = time.Second

// checkReopened returns an error if a store that was opened again is older than
// it was. No view runs meanwhile.
func checkReopened(s *Store, t *kv.Txn) error {
	s.cache.clear()
	tx := &Tx{store: s, txn: t}
	rev, err := tx.number(revisionKey)
	if err == nil && rev < s.rev.Load() {
		err = fmt.Errorf("%w: it is at revision %d, but was at %d; stop berth and restore a backup", ErrDamaged, rev, s.rev.Load())
	}
	return err
}

// repair opens the store again after a batch was given up. If the batch was stored
// all the same, every watcher reads everything again. Only the writer calls it.
func repair(s *Store) {
	err := s.db.Repair(func(t *kv.Txn) error {
		tx := &Tx{store: s, txn: t}
		rev, err := tx.number(revisionKey)
		if err != nil {
			return err
		}
		_, newest, err := eventLog.bounds(tx)
		if err == nil && rev > s.rev.Load() {
			s.rev.Store(rev)
			s.db.Checkpoint(rev)
			s.latest.restart(rev)
			s.changes.restart(s.changes.next+1, Change{Revision: rev})
			s.events.restart(newest, v1.Event{})
		}
		return err
	})
	if err != nil {
		s.log.Debug("the store could not be opened again; berth retries", "err", err)
	}
}
