package store

import (
	"time"
)

// trimChunk is the number of transitions that one update removes.
const trimChunk = 1000

// TrimEvents removes the transitions that are older than before, and all but the
// newest keep. It needs several updates, and returns the number of transitions that
// it has removed. The next seq does not change.
func (s *Store) TrimEvents(before time.Time, keep int) (removed int, err error) {
	for {
		n := 0
		err := s.Update(func(tx *Tx) (err error) {
			n, err = trimEvents(tx, before, uint64(max(keep, 0)))
			return err
		})
		if err != nil {
			return removed, err
		}
		removed += n
		if n < trimChunk {
			return removed, nil
		}
	}
}

// trimEvents removes one chunk. It begins at the oldest one kept: a scan from the
// start of the prefix would read the tombstones of all that were ever removed.
func trimEvents(tx *Tx, before time.Time, keep uint64) (int, error) {
	oldest, newest, err := tx.eventRange()
	if err != nil || oldest > newest {
		return 0, err
	}
	var keys []string
	next := oldest
	for entry := range tx.scan(eventPrefix, eventKey(oldest)) {
		e := tx.decodeEvent(entry)
		if len(keys) == trimChunk || e.Seq+keep > newest && !e.Time.Before(before) {
			break
		}
		keys = append(keys, entry.key)
		next = e.Seq + 1
	}
	if tx.err != nil || len(keys) == 0 {
		return 0, tx.err
	}
	for _, key := range keys {
		if err := tx.remove(key); err != nil {
			return 0, err
		}
	}
	return len(keys), tx.setNumbers(eventsKey, next, newest)
}
