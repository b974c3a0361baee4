package store

import (
	"context"
	"errors"
	"slices"
)

// Source returns a function that notifies the id of every object, and then of each
// that changes in one of the ways what; none given means all. It has the signature of
// a controller's source. When it has fallen behind, it begins again with all objects.
// It returns nil when ctx ends, and else ErrClosed.
func (c Collection[S, T]) Source(s *Store, what ...What) func(ctx context.Context, notify func(id string)) error {
	return func(ctx context.Context, notify func(string)) error {
		for {
			err := c.follow(ctx, s, what, notify)
			if !errors.Is(err, ErrCompacted) {
				return err
			}
		}
	}
}

// Changes returns a source that does not begin with all objects: it notifies the id
// of each object of c that changes after this call. When it has fallen behind, it
// notifies all of them.
func Changes[S cloner[S], T cloner[T]](c Collection[S, T], s *Store, what ...What) func(ctx context.Context, notify func(id string)) error {
	since := s.Revision()
	return func(ctx context.Context, notify func(string)) error {
		for {
			err := watchKind(ctx, s, c.kind(), &since, what, notify)
			if !errors.Is(err, ErrCompacted) {
				return err
			}
			var ids []string
			if ids, since, err = listed(s, c); err != nil {
				return err
			}
			for _, id := range ids {
				notify(id)
			}
		}
	}
}

// Lister returns a function that lists the ids of all objects, for a controller's
// resync.
func (c Collection[S, T]) Lister(s *Store) func() ([]string, error) {
	return func() ([]string, error) {
		ids, _, err := listed(s, c)
		return ids, err
	}
}

func (c Collection[S, T]) follow(ctx context.Context, s *Store, what []What, notify func(string)) error {
	ids, rev, err := listed(s, c)
	if err != nil {
		return err
	}
	for _, id := range ids {
		notify(id)
	}
	return watchKind(ctx, s, c.kind(), &rev, what, notify)
}

// watchKind notifies the changes of a kind after revision *since, and moves it.
func watchKind(ctx context.Context, s *Store, kind string, since *uint64, what []What, notify func(string)) error {
	for ch, err := range s.Watch(ctx, *since) {
		if err != nil {
			return err
		}
		if ch.Kind == kind && (len(what) == 0 || slices.Contains(what, ch.What)) {
			notify(ch.ID)
		}
		*since = max(*since, ch.Revision-1) // there may be more of this revision
	}
	return nil
}
