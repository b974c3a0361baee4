package store

import (
	"context"
	"iter"
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
		pos, ok := position(s.changes, since)
		if !ok {
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

// position returns the position of the first change after revision since, or false
// if such changes are no longer kept.
func position(changes *ring[Change], since uint64) (uint64, bool) {
	pos, lost := changes.search(func(c Change) bool { return c.Revision <= since })
	return pos, since >= lost.Revision
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
