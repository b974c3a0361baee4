package store

import (
	"context"
	"iter"

	v1 "berth/api/v1"
)

// Events yields every transition after seq since, in order and without a gap:
// first the stored ones, then each new one once it is on the disk, until ctx
// ends. Last it yields ErrCompacted, as ReadEvents does, or ErrClosed. Those
// that keep up are served from memory, so there may be many of them.
func (s *Store) Events(ctx context.Context, since uint64) iter.Seq2[v1.Event, error] {
	return func(yield func(v1.Event, error) bool) {
		for ctx.Err() == nil {
			piece, more, err := s.eventsAfter(since)
			if err != nil {
				yield(v1.Event{}, err)
				return
			}
			for _, e := range piece {
				if ctx.Err() != nil || !yield(e, nil) {
					return
				}
				since = e.Seq
			}
			if len(piece) == 0 && more != nil && !s.wait(ctx, more) {
				if ctx.Err() == nil {
					yield(v1.Event{}, ErrClosed)
				}
				return
			}
		}
	}
}

// eventsAfter is the next piece, from memory or else from the disk. Of memory,
// more is closed when there is another one; of the disk, it is nil: look again.
func (s *Store) eventsAfter(since uint64) (piece []v1.Event, more <-chan struct{}, err error) {
	piece, more, ok := s.events.from(since, pieceSize)
	if ok {
		return piece, more, nil
	}
	err = s.View(func(tx *Tx) (err error) {
		piece, err = ReadEvents(tx, since, pieceSize)
		return err
	})
	return piece, nil, err
}
