package store

import (
	"encoding/json"
	"fmt"
	"iter"
	"time"

	v1 "berth/api/v1"
)

// Emit stores a transition in this update, with the next Seq and the time of the
// update, and returns it with both. If it fails, the update fails.
func Emit(tx *Tx, e v1.Event) v1.Event {
	if uid, err := uidOf(tx, e.Container); err == nil {
		e.UID = uid
	}
	e.Users = usersOf(tx, e.Volume)
	err := eventLog.append(tx, func(seq uint64) any {
		e.Seq, e.Time, e.Epoch = seq, tx.now, "" // readers add the present epoch
		return e
	})
	if err == nil {
		err = indexEvent(tx, indexName(e.Container, e.Volume), e.Seq)
	}
	if err != nil {
		tx.fail(fmt.Errorf("transition of %s: %w", e.Container, err))
		return e
	}
	e.Epoch = tx.store.Incarnations.Epoch()
	tx.events = append(tx.events, e)
	return e
}

// usersOf returns the containers that use a volume now.
func usersOf(tx *Tx, volume string) (users []v1.ContainerRef) {
	if volume == "" {
		return nil
	}
	for _, id := range Containers.IDsBy(tx, volume) {
		if uid, err := uidOf(tx, id); err == nil {
			users = append(users, v1.ContainerRef{ID: id, UID: uid})
		}
	}
	return users
}

// uidOf returns the UID of a container.
func uidOf(tx *Tx, id string) (string, error) {
	spec, err := readRecord[v1.ContainerSpec](tx, Containers.specKey(id))
	return spec.Meta.UID, err
}

// EventRange returns the seqs of the oldest and the newest transition that are
// kept, or 0, 0 if none is.
func EventRange(tx *Tx) (oldest, newest uint64) {
	oldest, newest, err := eventLog.bounds(tx)
	tx.fail(err)
	if err != nil || oldest > newest {
		return 0, 0
	}
	return oldest, newest
}

// LastEvent returns the seq of the newest transition ever stored, also if it is no
// longer kept, or 0.
func LastEvent(tx *Tx) uint64 {
	_, newest, err := eventLog.bounds(tx)
	tx.fail(err)
	return newest
}

// ReadEvents returns up to limit transitions after seq since, oldest first. It
// returns ErrCompacted if the one after since is no longer kept, or if since is
// newer than all transitions: then it is from another store.
func ReadEvents(tx *Tx, since uint64, limit int) ([]v1.Event, error) {
	oldest, newest, err := eventLog.bounds(tx)
	if err != nil {
		return nil, err
	}
	if since+1 < oldest || since > newest {
		return nil, fmt.Errorf("transition %d: %w: %d to %d are kept", since+1, ErrCompacted, oldest, newest)
	}
	var list []v1.Event
	if limit <= 0 || since == newest {
		return nil, nil
	}
	for entry := range tx.scan(eventLog.prefix(), eventLog.key(since+1)) {
		if list = append(list, tx.decodeEvent(entry)); len(list) == limit {
			break
		}
	}
	return list, tx.err
}

// KeptEvents returns the seq of the oldest transition that is kept and that of the
// newest one ever stored. If none is kept, oldest is newest+1.
func KeptEvents(tx *Tx) (oldest, newest uint64) {
	newest = LastEvent(tx)
	if oldest, _ = EventRange(tx); oldest == 0 {
		oldest = newest + 1
	}
	return oldest, newest
}

// ReadKeptEvents is ReadEvents for a reader that does without transitions that are no
// longer kept: it begins with the oldest one that is.
func ReadKeptEvents(tx *Tx, since uint64, limit int) ([]v1.Event, error) {
	oldest, newest := KeptEvents(tx)
	if since >= newest {
		return nil, nil
	}
	return ReadEvents(tx, max(since, oldest-1), limit)
}

// EventsAfter yields the transitions after seq since, oldest first. It leaves out those
// that are no longer kept. An error of the storage ends it, and fails the transaction.
func EventsAfter(tx *Tx, since uint64) iter.Seq[v1.Event] {
	return func(yield func(v1.Event) bool) {
		for entry := range tx.scan(eventLog.prefix(), eventLog.key(since+1)) {
			if !yield(tx.decodeEvent(entry)) {
				return
			}
		}
	}
}

// decodeEvent decodes a transition. If it cannot, it returns a message in its place,
// so that there is no gap and the next ones can be read.
func (tx *Tx) decodeEvent(entry entry) (e v1.Event) {
	err := entry.read(func(b []byte) error { return json.Unmarshal(b, &e) })
	e.Epoch = tx.store.Incarnations.Epoch()
	if err == nil {
		return e
	}
	seq := eventLog.seq(entry.key)
	tx.store.log.Error("cannot read a transition", "seq", seq, "err", err)
	return v1.Event{Seq: seq, Epoch: e.Epoch, Time: tx.now, Event: v1.EventMessage, Data: "a stored transition cannot be read"}
}

// TrimEvents removes the transitions that are older than before, and all but the
// newest keep. It needs several updates, and returns the number of transitions that
// it has removed. The next seq does not change.
func (s *Store) TrimEvents(before time.Time, keep int) (removed int, err error) {
	return eventLog.trim(s, before, keep)
}
