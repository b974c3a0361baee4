package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
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

// ReadEventsOf returns up to limit transitions of some containers, or volumes (see
// OfVolume), after seq since, oldest first. It leaves out those that are no longer kept. Its cost is proportional to what it
// returns, not to the number of all transitions.
func ReadEventsOf(tx *Tx, containers []string, since uint64, limit int) ([]v1.Event, error) {
	oldest, newest := KeptEvents(tx)
	since = max(since, oldest-1)
	if since >= newest || limit <= 0 {
		return nil, tx.err
	}
	var seqs []uint64
	for _, id := range containers {
		seqs = append(seqs, seqsAfter(tx, id, since, limit)...)
	}
	slices.Sort(seqs)
	seqs = slices.Compact(seqs)
	var list []v1.Event
	for _, seq := range seqs[:min(limit, len(seqs))] {
		entry, err := tx.find(eventLog.key(seq))
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, tx.decodeEvent(entry))
	}
	return list, tx.err
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
