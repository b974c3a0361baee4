package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"berth/store/kv"
)

// errOnDisk reports that an update reads what only views can read.
var errOnDisk = fmt.Errorf("%w: an update reads no transitions, audit entries and outcomes", ErrFailed)

// sequence is a log of JSON values with numbers from 1, without gaps. They stay on the
// disk; only the bounds are in memory. Its value is the name of its keys.
type sequence string

const (
	eventLog sequence = "event"
	auditLog sequence = "audit"
)

// bounds are the oldest and the newest number. If no value is kept, Oldest is Newest
// plus 1.
type bounds struct {
	Oldest uint64 `json:"oldest"`
	Newest uint64 `json:"newest"`
}

func (l sequence) boundsKey() entry[bounds] { return entry[bounds]("meta/" + string(l) + "s") }

func (l sequence) key(seq uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte(l+"/"), seq))
}

func (l sequence) bounds(tx *Tx) bounds {
	b, _ := l.boundsKey().get(tx) // check has returned its error
	if b == (bounds{}) {
		return bounds{Oldest: 1}
	}
	return b
}

// check returns an error if the bounds cannot be read: numbers would be given again.
func (l sequence) check(tx *Tx) error {
	_, err := l.boundsKey().get(tx)
	return err
}

// append stores the value that make returns for the next number.
func (l sequence) append(tx *Tx, make func(seq uint64) any) error {
	b := l.bounds(tx)
	b.Newest++
	text, err := json.Marshal(make(b.Newest))
	if err != nil {
		return err
	}
	return errors.Join(tx.write(l.key(b.Newest), text), l.boundsKey().set(tx, b))
}

// after yields the values with numbers after since up to the newest one of the state that tx
// reads, oldest first. A value may be missing if it is being removed.
func (l sequence) after(tx *Tx, since uint64) iter.Seq2[numbered, error] {
	return func(yield func(numbered, error) bool) {
		b := l.bounds(tx)
		if since = max(since, b.Oldest-1); since >= b.Newest {
			return
		}
		err := tx.read(func(t *kv.Txn) error {
			l.each(t.Scan(string(l+"/"), l.key(since+1)), func(n numbered) bool { return n.seq <= b.Newest && yield(n, nil) })
			return nil
		})
		if err != nil {
			yield(numbered{}, err)
		}
	}
}

// backward yields the values of the state that tx reads, newest first. The oldest ones may be
// missing if they are being removed.
func (l sequence) backward(tx *Tx) iter.Seq2[numbered, error] {
	return func(yield func(numbered, error) bool) {
		b := l.bounds(tx)
		if b.Newest < b.Oldest {
			return
		}
		err := tx.read(func(t *kv.Txn) error {
			l.each(t.ScanBack(string(l+"/"), l.key(b.Newest)), func(n numbered) bool {
				return n.seq >= b.Oldest && yield(n, nil) && n.seq > b.Oldest
			})
			return nil
		})
		if err != nil {
			yield(numbered{}, err)
		}
	}
}

// each calls fn with the values of a scan, until it returns false.
func (l sequence) each(items iter.Seq[kv.Item], fn func(numbered) bool) {
	for item := range items {
		if !fn(numbered{binary.BigEndian.Uint64([]byte(item.Key()[len(l)+1:])), item}) {
			return
		}
	}
}

// numbered is a value with its number, valid until the next one.
type numbered struct {
	seq  uint64
	item kv.Item
}

// trimChunk is the number of values that one update removes.
const trimChunk = 1000

// trim removes the values that are older than before, and all but the newest keep. It
// needs several updates, and returns the number of values that it has removed. The
// next number does not change. A value that cannot be read counts as old.
func (l sequence) trim(s *Store, before time.Time, keep int) (removed int, err error) {
	for {
		var first, last uint64
		err := s.View(func(tx *Tx) (err error) {
			first, last, err = l.old(tx, before, uint64(max(keep, 0)))
			return err
		})
		if err != nil || last < first {
			return removed, err
		}
		err = s.Update(func(tx *Tx) error {
			b := l.bounds(tx)
			for b.Oldest <= last {
				if err := tx.write(l.key(b.Oldest), nil); err != nil {
					return err
				}
				b.Oldest++
			}
			return l.boundsKey().set(tx, b)
		})
		if err != nil {
			return removed, err
		}
		removed += int(last + 1 - first)
	}
}

// old returns the first and the last value of a chunk that is to be removed; last is first-1
// if there is none. Values are removed from the oldest one on, so that a scan from there meets no
// tombstones.
func (l sequence) old(tx *Tx, before time.Time, keep uint64) (first, last uint64, err error) {
	b := l.bounds(tx)
	first, last = b.Oldest, b.Oldest-1
	for n, err := range l.after(tx, 0) {
		if err != nil {
			return first, last, err
		}
		var value struct {
			Time time.Time `json:"time"`
		}
		_ = unmarshal(n.item, &value) // one that cannot be read has the zero time
		if last+1 == first+trimChunk || n.seq+keep > b.Newest && !value.Time.Before(before) {
			break
		}
		last = n.seq
	}
	return first, last, nil
}
