package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	v1 "berth/api/v1"
)

const (
	eventPrefix = "event/"
	eventsKey   = "meta/events"
)

func eventKey(seq uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte(eventPrefix), seq))
}

// Emit stores a transition in this update, with the next Seq and the time of the
// update, and returns it with both. If it fails, the update fails.
func Emit(tx *Tx, e v1.Event) v1.Event {
	oldest, newest, err := tx.eventRange()
	if err != nil {
		tx.fail(err)
		return e
	}
	if o, err := Containers.Get(tx, e.Container); err == nil {
		e.UID = o.Meta.UID
	}
	e.Seq, e.Time, e.Epoch = newest+1, tx.now, "" // readers add the present epoch
	b, err := json.Marshal(e)
	if err == nil {
		err = errors.Join(tx.set(eventKey(e.Seq), b), tx.setNumbers(eventsKey, oldest, e.Seq))
	}
	if err != nil {
		tx.fail(fmt.Errorf("transition of %s: %w", e.Container, err))
		return e
	}
	e.Epoch = tx.store.History.Epoch()
	tx.events = append(tx.events, e)
	return e
}

// eventRange returns the oldest and the newest seq. If no transition is kept, oldest
// is newest plus 1.
func (tx *Tx) eventRange() (oldest, newest uint64, err error) {
	oldest = 1
	err = tx.numbers(eventsKey, &oldest, &newest)
	return oldest, newest, err
}

// EventRange returns the seqs of the oldest and the newest transition that are
// kept, or 0, 0 if none is.
func EventRange(tx *Tx) (oldest, newest uint64) {
	oldest, newest, err := tx.eventRange()
	tx.fail(err)
	if err != nil || oldest > newest {
		return 0, 0
	}
	return oldest, newest
}

// LastEvent returns the seq of the newest transition ever stored, also if it is no
// longer kept, or 0.
func LastEvent(tx *Tx) uint64 {
	_, newest, err := tx.eventRange()
	tx.fail(err)
	return newest
}

// ReadEvents returns up to limit transitions after seq since, oldest first. It
// returns ErrCompacted if the one after since is no longer kept, or if since is
// newer than all transitions: then it is from another store.
func ReadEvents(tx *Tx, since uint64, limit int) ([]v1.Event, error) {
	oldest, newest, err := tx.eventRange()
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
	for entry := range tx.scan(eventPrefix, eventKey(since+1)) {
		if list = append(list, tx.decodeEvent(entry)); len(list) == limit {
			break
		}
	}
	return list, tx.err
}

// decodeEvent decodes a transition. If it cannot, it returns a message in its place,
// so that there is no gap and the next ones can be read.
func (tx *Tx) decodeEvent(entry entry) (e v1.Event) {
	err := entry.read(func(b []byte) error { return json.Unmarshal(b, &e) })
	e.Epoch = tx.store.History.Epoch()
	if err == nil {
		return e
	}
	seq := eventSeq(entry.key)
	tx.store.log.Error("cannot read a transition", "seq", seq, "err", err)
	return v1.Event{Seq: seq, Epoch: e.Epoch, Time: tx.now, Event: v1.EventMessage, Data: "a stored transition cannot be read"}
}

func eventSeq(key string) uint64 {
	return binary.BigEndian.Uint64([]byte(key[len(eventPrefix):]))
}
