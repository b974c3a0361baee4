package store

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"iter"
	"slices"

	v1 "berth/api/v1"
)

// eventsOf returns the prefix of the index of a container's transitions.
func eventsOf(container string) string { return "index/event/" + container + "/" }

func eventIndexKey(container string, seq uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte(eventsOf(container)), seq))
}

// OfVolume returns the name under which ReadEventsOf finds the transitions of a volume:
// those of its backups and restores. No container has this name.
func OfVolume(id string) string { return ":" + id }

// indexEvent adds a transition to the index of its container or volume. Those of the
// node have none.
func indexEvent(tx *Tx, of string, seq uint64) error {
	if of == "" {
		return nil
	}
	return tx.set(eventIndexKey(of, seq), []byte{})
}

// indexName returns the name of a transition in the index, or an empty string.
func indexName(container, volume string) string {
	if container == "" && volume != "" {
		return OfVolume(volume)
	}
	return container
}

// nameOf returns the name of a stored transition in the index, or an empty string.
func nameOf(e entry) string {
	var value struct {
		Container string `json:"container"`
		Volume    string `json:"volume"`
	}
	if e.read(func(b []byte) error { return json.Unmarshal(b, &value) }) != nil {
		return ""
	}
	return indexName(value.Container, value.Volume)
}

// ReadEventsOf returns the first limit transitions of EventsOf.
func ReadEventsOf(tx *Tx, containers []string, since uint64, limit int) ([]v1.Event, error) {
	var list []v1.Event
	if limit <= 0 {
		return nil, tx.err
	}
	for e := range EventsOf(tx, containers, since) {
		if list = append(list, e); len(list) == limit {
			break
		}
	}
	return list, tx.err
}

// EventsOf yields the transitions of some containers, or volumes (see OfVolume), after
// seq since, oldest first. It leaves out those that are no longer kept. Its cost is
// proportional to what the caller takes, not to the number of all transitions. An error
// of the storage ends it, and fails the transaction.
func EventsOf(tx *Tx, containers []string, since uint64) iter.Seq[v1.Event] {
	return func(yield func(v1.Event) bool) {
		oldest, newest := KeptEvents(tx)
		since := max(since, oldest-1)
		if since >= newest {
			return
		}
		for seq := range mergeSeqs(tx, containers, since) {
			entry, err := tx.find(eventLog.key(seq))
			if errors.Is(err, ErrNotFound) {
				continue
			}
			if tx.fail(err); err != nil || !yield(tx.decodeEvent(entry)) {
				return
			}
		}
	}
}

// seqChunk is how many seqs of one container are read ahead.
const seqChunk = 256

// seqReader reads the seqs of one container's transitions.
type seqReader struct {
	container string
	ahead     []uint64
	last      bool // there are none after those ahead
}

func (r *seqReader) read(tx *Tx, since uint64) {
	r.ahead = seqsAfter(tx, r.container, since, seqChunk)
	r.last = len(r.ahead) < seqChunk
}

// mergeSeqs yields the seqs of the transitions of some containers after since, in order.
func mergeSeqs(tx *Tx, containers []string, since uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		var readers []*seqReader
		for _, id := range slices.Compact(slices.Sorted(slices.Values(containers))) {
			r := &seqReader{container: id}
			r.read(tx, since)
			readers = append(readers, r)
		}
		drained := func(r *seqReader) bool { return len(r.ahead) == 0 }
		for readers = slices.DeleteFunc(readers, drained); len(readers) > 0; {
			first := slices.MinFunc(readers, func(a, b *seqReader) int { return cmp.Compare(a.ahead[0], b.ahead[0]) })
			seq := first.ahead[0]
			if !yield(seq) {
				return
			}
			if first.ahead = first.ahead[1:]; drained(first) && !first.last {
				first.read(tx, seq)
			}
			if drained(first) {
				readers = slices.DeleteFunc(readers, drained)
			}
		}
	}
}

// seqsAfter returns the first seqs of a container's transitions after since.
func seqsAfter(tx *Tx, container string, since uint64, limit int) (seqs []uint64) {
	prefix := eventsOf(container)
	for e := range tx.scan(prefix, eventIndexKey(container, since+1)) {
		if len(e.key) != len(prefix)+8 {
			continue
		}
		if seqs = append(seqs, binary.BigEndian.Uint64([]byte(e.key[len(prefix):]))); len(seqs) == limit {
			break
		}
	}
	return seqs
}

// indexEvents adds all transitions to the index, for a store of version 2.
func indexEvents(s *Store) error {
	var oldest, newest uint64
	err := s.View(func(tx *Tx) (err error) {
		oldest, newest, err = eventLog.bounds(tx)
		return err
	})
	if err != nil {
		return err
	}
	return inChunks(s, func(yield func(uint64) bool) {
		for seq := oldest; seq <= newest && yield(seq); seq++ {
		}
	}, func(tx *Tx, seq uint64) error {
		e, err := tx.find(eventLog.key(seq))
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return indexEvent(tx, nameOf(e), seq)
	})
}
