package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
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
	Holes  uint64 `json:"holes,omitempty"` // numbers between them whose values were removed, see drop
}

// kept returns how many values are kept.
func (b bounds) kept() uint64 { return b.Newest + 1 - b.Oldest - b.Holes }

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
		first, last, found, err := l.old(s.Read(), before, uint64(max(keep, 0)))
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
			b.Holes -= min(b.Holes, last+1-first-found)
			return l.boundsKey().set(tx, b)
		})
		if err != nil {
			return removed, err
		}
		removed += int(found)
	}
}

// drop removes some values in the midst of the log. It needs several updates.
func (l sequence) drop(s *Store, seqs []uint64) error {
	for chunk := range slices.Chunk(seqs, trimChunk) {
		err := s.Update(func(tx *Tx) error {
			b := l.bounds(tx)
			for _, seq := range chunk {
				if seq < b.Oldest {
					continue // it was trimmed
				}
				if err := tx.write(l.key(seq), nil); err != nil {
					return err
				}
				b.Holes++
			}
			return l.boundsKey().set(tx, b)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// old returns the first and the last number of a chunk that is to be removed, and how many values it has;
// last is first-1 if there is none. Values are removed from the oldest one on, so that a scan from
// there meets no tombstones.
func (l sequence) old(tx *Tx, before time.Time, keep uint64) (first, last, found uint64, err error) {
	b := l.bounds(tx)
	excess := b.kept() - min(keep, b.kept())
	first, last = b.Oldest, b.Oldest-1
	for n, err := range l.after(tx, 0) {
		if err != nil {
			return first, last, found, err
		}
		if found == trimChunk || found >= excess && !timeOf(n).Before(before) {
			break
		}
		last = n.seq
		found++
	}
	return first, last, found, nil
}
