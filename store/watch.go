package store

import (
	"cmp"
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

// Watch yields every change after revision since, in order, once it is on the
// disk, until ctx ends. It ends with ErrCompacted if changes after since are no
// longer kept (list the objects again, and watch from the revision of that view), or
// with ErrClosed. After a restart no older changes are kept.
func (s *Store) Watch(ctx context.Context, since uint64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for ctx.Err() == nil {
			list, more, kept := s.changes.after(since)
			if !kept {
				yield(Change{}, ErrCompacted)
				return
			}
			for _, c := range list {
				if !yield(c, nil) {
					return
				}
				since = c.Revision
			}
			if len(list) == 0 && !s.wait(ctx, more) {
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
	return func(ctx context.Context, notify func(string)) error {
		for {
			tx := s.Read()
			for _, id := range c.IDs(tx) {
				notify(id)
			}
			if err := c.follow(ctx, s, tx.revision, what, notify); !errors.Is(err, ErrCompacted) {
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
	return func() ([]string, error) { return c.IDs(s.Read()), nil }
}

// Await waits until done returns true for the object, and returns it. It calls done
// with the object as it is, and after each commit. It returns ErrNotFound if
// the object does not exist or is purged, and ctx's error, with the object as last
// read, if ctx ends first.
func (c Collection[S, T]) Await(ctx context.Context, s *Store, id string, done func(v1.Object[S, T]) bool) (o v1.Object[S, T], err error) {
	for {
		more := s.changes.next()
		if o, err = c.Get(s.Read(), id); err != nil || done(o) {
			return o, err
		}
		if !s.wait(ctx, more) {
			return o, cmp.Or(ctx.Err(), ErrClosed)
		}
	}
}

// changes keeps the newest changes. Readers copy them, and then wait for a channel to be closed at
// the next commit: they hold no lock while they wait.
type changes struct {
	keep int

	mu   sync.RWMutex
	list []Change // oldest first; keep of them at least, and twice as many at most
	lost uint64   // revision of the newest change that is no longer kept
	more chan struct{}
}

func newChanges(keep int, lost uint64) *changes {
	return &changes{keep: keep, lost: lost, more: make(chan struct{})}
}

// publish adds the changes of a commit, which may have none, and wakes those that wait.
func (c *changes) publish(list []Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, list...)
	if n := len(c.list) - c.keep; n > c.keep {
		c.lost, c.list = c.list[n-1].Revision, slices.Clone(c.list[n:])
	}
	close(c.more)
	c.more = make(chan struct{})
}

// after returns the changes after a revision, and a channel that is closed at the next commit. It
// returns false if some of them are no longer kept.
func (c *changes) after(since uint64) (list []Change, more <-chan struct{}, kept bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	first := sort.Search(len(c.list), func(i int) bool { return c.list[i].Revision > since })
	return slices.Clone(c.list[first:]), c.more, since >= c.lost
}

// next returns a channel that is closed at the next commit.
func (c *changes) next() <-chan struct{} {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.more
}
