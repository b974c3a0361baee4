package store

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sort"
	"sync"

	v1 "berth/api/v1"
)

// What names the part of an object that changed.
type What uint8

// The changes of an object.
const (
	SpecChanged   What = iota // its spec, or it was marked as deleted
	StatusChanged             // its status
	Purged                    // its records were removed
)

// Change reports that an object changed. The new state is not in it: read the object.
type Change struct {
	Revision uint64
	Kind, ID string
	What     What
}

// chunkSize is how many items a watcher takes at a time.
const chunkSize = 256

// Watch yields every change after revision since, in order, once it is on the
// disk, until ctx ends. It ends with ErrCompacted if changes after since are no
// longer kept (list the objects again, and watch from the revision of that view), or
// with ErrClosed. After a restart no older changes are kept.
func (s *Store) Watch(ctx context.Context, since uint64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		pos, lost := s.changes.search(func(c Change) bool { return c.Revision <= since })
		if since < lost.Revision {
			yield(Change{}, ErrCompacted)
			return
		}
		for ctx.Err() == nil {
			chunk, more, ok := s.changes.from(pos, chunkSize)
			if !ok {
				yield(Change{}, ErrCompacted)
				return
			}
			pos += uint64(len(chunk))
			for _, c := range chunk {
				if c.Revision > since && !yield(c, nil) {
					return
				}
			}
			if len(chunk) == 0 && !s.wait(ctx, more) {
				if ctx.Err() == nil {
					yield(Change{}, ErrClosed)
				}
				return
			}
		}
	}
}

// wait waits for more. It returns false if ctx ends or the store is closed first.
func (s *Store) wait(ctx context.Context, more <-chan struct{}) bool {
	select {
	case <-more:
		return true
	case <-ctx.Done():
		return false
	case <-s.closing:
		return false
	}
}

// Source returns a function that notifies the id of every object, and then of each
// that changes in one of the ways what; none given means all. It has the signature of
// a controller's source. When it has fallen behind, it begins again with all objects.
// It returns nil when ctx ends, and else ErrClosed.
func (c Collection[S, T]) Source(s *Store, what ...What) func(ctx context.Context, notify func(id string)) error {
	return c.source(s, nil, what)
}

// Changes is Source without all objects at the beginning: it begins with the changes after
// this call.
func (c Collection[S, T]) Changes(s *Store, what ...What) func(ctx context.Context, notify func(id string)) error {
	since := s.Revision()
	return c.source(s, &since, what)
}

// source notifies the changes after revision since, or all objects first if it is nil.
func (c Collection[S, T]) source(s *Store, since *uint64, what []What) func(ctx context.Context, notify func(id string)) error {
	return func(ctx context.Context, notify func(string)) error {
		for since := since; ; since = nil {
			if since == nil {
				tx := s.reader()
				since = &tx.revision
				for _, id := range c.IDs(tx) {
					notify(id)
				}
			}
			if err := c.follow(ctx, s, *since, what, notify); !errors.Is(err, ErrCompacted) {
				return err
			}
		}
	}
}

// follow notifies the changes after revision since.
func (c Collection[S, T]) follow(ctx context.Context, s *Store, since uint64, what []What, notify func(string)) error {
	for change, err := range s.Watch(ctx, since) {
		if err != nil {
			return err
		}
		if change.Kind == c.kind() && (len(what) == 0 || slices.Contains(what, change.What)) {
			notify(change.ID)
		}
	}
	return nil
}

// Lister returns a function that lists the ids of all objects, for a controller's
// resync.
func (c Collection[S, T]) Lister(s *Store) func() ([]string, error) {
	return func() (ids []string, err error) {
		err = s.View(func(tx *Tx) error { ids = c.IDs(tx); return nil })
		return ids, err
	}
}

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
		if err := c.awaitChange(ctx, s, id, rev); err != nil {
			return o, err
		}
	}
}

// awaitChange waits for the next change of one object after revision rev.
func (c Collection[S, T]) awaitChange(ctx context.Context, s *Store, id string, rev uint64) error {
	for change, err := range s.Watch(ctx, rev) {
		if errors.Is(err, ErrCompacted) {
			return nil
		}
		if err != nil {
			return err
		}
		if change.Kind == c.kind() && change.ID == id {
			return nil
		}
	}
	return ctx.Err()
}

// ring keeps the newest items. The position of an item is the number of items before
// it. Readers copy items and then wait for a channel to be closed when there are more:
// they hold no lock while they wait.
type ring[T any] struct {
	mu    sync.RWMutex
	items []T
	first uint64 // position of the oldest item kept
	next  uint64 // position of the next item
	lost  T      // the item before the oldest one kept
	more  chan struct{}
}

func newRing[T any](size int, next uint64, lost T) *ring[T] {
	return &ring[T]{items: make([]T, size), first: next, next: next, lost: lost, more: make(chan struct{})}
}

func (r *ring[T]) append(items ...T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := uint64(len(r.items))
	for _, item := range items {
		if r.next-r.first == size {
			r.lost = r.items[r.first%size]
			r.first++
		}
		r.items[r.next%size] = item
		r.next++
	}
	close(r.more)
	r.more = make(chan struct{})
}

// from returns up to limit items from pos on, and a channel that is closed when an
// item is appended. It returns false if pos is no longer kept, or is in the future.
func (r *ring[T]) from(pos uint64, limit int) (items []T, more <-chan struct{}, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if pos < r.first || pos > r.next {
		return nil, nil, false
	}
	end := min(r.next, pos+uint64(limit))
	size := uint64(len(r.items))
	items = make([]T, 0, end-pos)
	for ; pos < end; pos++ {
		items = append(items, r.items[pos%size])
	}
	return items, r.more, true
}

// search returns the position after the newest item for which seen returns true,
// and the item before the oldest one kept.
func (r *ring[T]) search(seen func(T) bool) (pos uint64, lost T) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	size := uint64(len(r.items))
	n := sort.Search(int(r.next-r.first), func(i int) bool {
		return !seen(r.items[(r.first+uint64(i))%size])
	})
	return r.first + uint64(n), r.lost
}
