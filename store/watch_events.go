package store

import (
	"context"
	"iter"

	v1 "berth/api/v1"
)

// Events yields every transition after seq since, in order and without a gap:
// first the stored ones, then each new one once it is on the disk, until ctx ends.
// It ends with ErrCompacted, like ReadEvents, or with ErrClosed. Readers that keep up
// are served from memory, so there may be many of them.
func (s *Store) Events(ctx context.Context, since uint64) iter.Seq2[v1.Event, error] {
	return func(yield func(v1.Event, error) bool) {
		for ctx.Err() == nil {
			chunk, more, err := s.eventsAfter(since)
			if err != nil {
				yield(v1.Event{}, err)
				return
			}
			for _, e := range chunk {
				if ctx.Err() != nil || !yield(e, nil) {
					return
				}
				since = e.Seq
			}
			if len(chunk) == 0 && more != nil && !s.wait(ctx, more) {
				if ctx.Err() == nil {
					yield(v1.Event{}, ErrClosed)
				}
				return
			}
		}
	}
}

// eventsAfter returns the next transitions, from memory or else from the disk. More
// is closed when there are others in memory; it is nil for those of the disk: call
// it again.
func (s *Store) eventsAfter(since uint64) (chunk []v1.Event, more <-chan struct{}, err error) {
	chunk, more, ok := s.events.from(since, chunkSize)
	if ok {
		return chunk, more, nil
	}
	err = s.View(func(tx *Tx) (err error) {
		chunk, err = ReadEvents(tx, since, chunkSize)
		return err
	})
	return chunk, nil, err
}
