package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	v1 "berth/api/v1"
)

// Emit stores a transition in this update, with the next Seq and the time of the
// update, and returns it with both. If it fails, the update fails.
func (tx *Tx) Emit(e v1.Event) v1.Event {
	if c := Containers.find(tx, e.Container); c != nil {
		e.UID = c.Meta.UID
	}
	e.Users = tx.usersOf(e.Volume)
	e.Data = v1.MessageText(e.Data)
	err := eventLog.append(tx, func(seq uint64) any {
		e.Seq, e.Time, e.Epoch = seq, tx.now, "" // readers add the present epoch
		return e
	})
	if err != nil {
		tx.err = fmt.Errorf("transition of %s: %w", e.Container, err)
		return e
	}
	e.Epoch = tx.store.Incarnations.Epoch()
	return e
}

// usersOf returns the containers that use a volume now.
func (tx *Tx) usersOf(volume string) (users []v1.ContainerRef) {
	if volume == "" {
		return nil
	}
	for _, id := range Containers.IDsBy(tx, volume) {
		users = append(users, v1.ContainerRef{ID: id, UID: Containers.find(tx, id).Meta.UID})
	}
	return users
}

// EventBounds returns the seq of the oldest transition that is kept and that of the
// newest one ever stored. If none is kept, oldest is newest+1.
func (tx *Tx) EventBounds() (oldest, newest uint64) {
	b := eventLog.bounds(tx)
	return b.Oldest, b.Newest
}

// Events yields the transitions after seq since, oldest first. It ends with ErrCompacted
// if the one after since is no longer kept, or if since is newer than all transitions:
// then it is from another store. It is for views.
func (tx *Tx) Events(since uint64) iter.Seq2[v1.Event, error] {
	return func(yield func(v1.Event, error) bool) {
		oldest, newest := tx.EventBounds()
		if since+1 < oldest || since > newest {
			yield(v1.Event{}, fmt.Errorf("transition %d: %w: %d to %d are kept", since+1, ErrCompacted, oldest, newest))
			return
		}
		for n, err := range eventLog.after(tx, since) {
			if err == nil && n.seq != since+1 { // removed since tx began
				err = fmt.Errorf("transition %d: %w", since+1, ErrCompacted)
			}
			if err != nil {
				yield(v1.Event{}, err)
				return
			}
			since = n.seq
			if !yield(tx.decodeEvent(n), nil) {
				return
			}
		}
		if since < newest { // the last ones too
			yield(v1.Event{}, fmt.Errorf("transition %d: %w", since+1, ErrCompacted))
		}
	}
}

// EventsBackward yields the transitions that are kept, newest first. It is for views.
func (tx *Tx) EventsBackward() iter.Seq2[v1.Event, error] {
	return func(yield func(v1.Event, error) bool) {
		for n, err := range eventLog.backward(tx) {
			if err != nil {
				yield(v1.Event{}, err)
				return
			}
			if !yield(tx.decodeEvent(n), nil) {
				return
			}
		}
	}
}

// ViewEvents calls fn with a view. It is for functions that begin with the oldest transition of EventBounds: it calls
// fn again, at most 10 times, if that one was removed before fn read it.
func (s *Store) ViewEvents(fn func(*Tx) error) (err error) {
	for range 10 {
		if err = fn(s.Read()); !errors.Is(err, ErrCompacted) {
			break
		}
	}
	return err
}

// ReadEvents returns the first limit transitions of Tx.Events.
func ReadEvents(tx *Tx, since uint64, limit int) (list []v1.Event, err error) {
	for e, err := range tx.Events(since) {
		if err != nil || len(list) == limit {
			return list, err
		}
		list = append(list, e)
	}
	return list, nil
}

// decodeEvent decodes a transition. If it cannot, it returns a message in its place,
// so that there is no gap and the next ones can be read.
func (tx *Tx) decodeEvent(n numbered) (e v1.Event) {
	err := unmarshal(n.item, &e)
	if err != nil {
		tx.store.log.Error("cannot read a transition", "seq", n.seq, "err", err)
		e = v1.Event{Seq: n.seq, Time: tx.now, Event: v1.EventMessage, Data: "a stored transition cannot be read"}
	}
	e.Epoch = tx.store.Incarnations.Epoch()
	return e
}

// TrimEvents removes the transitions that are older than before, and all but the
// newest keep. It needs several updates, and returns the number of transitions that
// it has removed. The next seq does not change.
func (s *Store) TrimEvents(before time.Time, keep int) (removed int, err error) {
	return eventLog.trim(s, before, keep)
}

// eventsAtOnce is how many transitions Store.Events reads in one view.
const eventsAtOnce = 256

// Events yields every transition after seq since, in order and without a gap:
// first the stored ones, then each new one once it is on the disk, until ctx ends.
// It ends with ErrCompacted, like Tx.Events, or with ErrClosed.
func (s *Store) Events(ctx context.Context, since uint64) iter.Seq2[v1.Event, error] {
	return func(yield func(v1.Event, error) bool) {
		for ctx.Err() == nil {
			more := s.changes.next()
			list, err := ReadEvents(s.Read(), since, eventsAtOnce)
			for _, e := range list {
				if ctx.Err() != nil || !yield(e, nil) {
					return
				}
				since = e.Seq
			}
			if err == nil && len(list) == 0 && !s.wait(ctx, more) && ctx.Err() == nil {
				err = ErrClosed
			}
			if err != nil {
				yield(v1.Event{}, err)
				return
			}
		}
	}
}
