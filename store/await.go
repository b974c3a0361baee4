package store

import (
	"context"
	"errors"

	v1 "berth/api/v1"
)

// Await waits until done returns true for the object, and returns it. It calls done
// with the object as it is, and after each change of it. It returns ErrNotFound if
// the object does not exist or is purged, and ctx's error, with the object as last
// read, if ctx ends first.
func (c Collection[S, T]) Await(ctx context.Context, s *Store, id string, done func(v1.Object[S, T]) bool) (v1.Object[S, T], error) {
	for {
		var o v1.Object[S, T]
		var rev uint64
		err := s.View(func(tx *Tx) (err error) {
			rev = tx.Revision()
			o, err = c.Get(tx, id)
			return err
		})
		if err != nil || done(o) {
			return o, err
		}
		if err := awaitChange(ctx, s, c.kind(), id, rev); err != nil {
			return o, err
		}
	}
}

// awaitChange waits for the next change of one object after revision rev.
func awaitChange(ctx context.Context, s *Store, kind, id string, rev uint64) error {
	for ch, err := range s.Watch(ctx, rev) {
		if errors.Is(err, ErrCompacted) {
			return nil
		}
		if err != nil {
			return err
		}
		if ch.Kind == kind && ch.ID == id {
			return nil
		}
	}
	return ctx.Err()
}
