package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"
)

// sequence is a log of JSON values with numbers from 1, without gaps. Its value is the
// name of its keys.
type sequence string

const (
	eventLog sequence = "event"
	auditLog sequence = "audit"
)

func (l sequence) prefix() string    { return string(l) + "/" }
func (l sequence) boundsKey() string { return "meta/" + string(l) + "s" }

func (l sequence) key(seq uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte(l.prefix()), seq))
}

// seq returns the number in a key.
func (l sequence) seq(key string) uint64 {
	return binary.BigEndian.Uint64([]byte(key[len(l.prefix()):]))
}

// bounds returns the oldest and the newest number. If no value is kept, oldest is
// newest plus 1.
func (l sequence) bounds(tx *Tx) (oldest, newest uint64, err error) {
	oldest = 1
	err = tx.numbers(l.boundsKey(), &oldest, &newest)
	return oldest, newest, err
}

// append stores the value that make returns for the next number.
func (l sequence) append(tx *Tx, make func(seq uint64) any) error {
	oldest, newest, err := l.bounds(tx)
	if err != nil {
		return err
	}
	b, err := json.Marshal(make(newest + 1))
	if err != nil {
		return err
	}
	return errors.Join(tx.set(l.key(newest+1), b), tx.setNumbers(l.boundsKey(), oldest, newest+1))
}

// trimChunk is the number of values that one update removes.
const trimChunk = 1000

// trim removes the values that are older than before, and all but the newest keep. It
// needs several updates, and returns the number of values that it has removed. The
// next number does not change. A value that cannot be read counts as old.
func (l sequence) trim(s *Store, before time.Time, keep int) (removed int, err error) {
	for {
		n := 0
		err := s.Update(func(tx *Tx) (err error) {
			n, err = l.trimChunk(tx, before, uint64(max(keep, 0)))
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

// trimChunk removes one chunk. It begins at the oldest one kept: a scan from the
// start of the prefix would read the tombstones of all that were ever removed.
func (l sequence) trimChunk(tx *Tx, before time.Time, keep uint64) (int, error) {
	oldest, newest, err := l.bounds(tx)
	if err != nil || oldest > newest {
		return 0, err
	}
	var keys []string
	next, removed := oldest, 0
	for entry := range tx.scan(l.prefix(), l.key(oldest)) {
		seq := l.seq(entry.key)
		if removed == trimChunk || seq+keep > newest && !timeOf(entry).Before(before) {
			break
		}
		keys = append(keys, entry.key)
		if name := nameOf(entry); l == eventLog && name != "" {
			keys = append(keys, eventIndexKey(name, seq)) // stays if the transition cannot be decoded, and readers skip it
		}
		next, removed = seq+1, removed+1
	}
	if tx.err != nil || len(keys) == 0 {
		return 0, tx.err
	}
	for _, key := range keys {
		if err := tx.remove(key); err != nil {
			return 0, err
		}
	}
	return removed, tx.setNumbers(l.boundsKey(), next, newest)
}

// timeOf returns the field time of a value, or the zero time.
func timeOf(e entry) time.Time {
	var value struct {
		Time time.Time `json:"time"`
	}
	if e.read(func(b []byte) error { return json.Unmarshal(b, &value) }) != nil {
		return time.Time{}
	}
	return value.Time
}
