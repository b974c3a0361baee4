package store

import (
	"context"
	"iter"
)

// What says which half of an object changed.
type What uint8

// The changes an object can see.
const (
	SpecChanged   What = iota // its spec, or that it is asked to go
	StatusChanged             // its status
	Purged                    // it is gone
)

// Change says that an object changed. It does not say how: read the object.
type Change struct {
	Revision uint64
	Kind, ID string
	What     What
}

// pieceSize is how many items a watcher takes at a time.
const pieceSize = 256

// Watch yields every change after revision since, in order, once it is on the
// disk, until ctx ends. Last it yields ErrCompacted if changes after since are
// no longer kept (list the objects again, and watch from the revision of that
// view), or ErrClosed. After a restart nothing older is kept.
func (s *Store) Watch(ctx context.Context, since uint64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		pos, ok := position(s.changes, since)
		if !ok {
			yield(Change{}, ErrCompacted)
			return
		}
		for ctx.Err() == nil {
			piece, more, ok := s.changes.from(pos, pieceSize)
			if !ok {
				yield(Change{}, ErrCompacted)
				return
			}
			pos += uint64(len(piece))
			for _, c := range piece {
				if c.Revision > since && !yield(c, nil) {
					return
				}
			}
			if len(piece) == 0 && !s.wait(ctx, more) {
				if ctx.Err() == nil {
					yield(Change{}, ErrClosed)
				}
				return
			}
		}
	}
}

// position is that of the first change after revision since. It is false if
// such changes are no longer kept.
func position(changes *ring[Change], since uint64) (uint64, bool) {
	pos, lost := changes.search(func(c Change) bool { return c.Revision <= since })
	return pos, since >= lost.Revision
}

// wait is false when ctx has ended or the store is closed.
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
