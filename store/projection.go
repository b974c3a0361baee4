package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	v1 "berth/api/v1"
)

// Projection keeps a value that is derived from each object of a kind. It derives a
// value again only after its object has changed, and only when somebody reads: a read
// costs what has changed since the read before. A read returns the objects of one
// revision, with every update that had returned before it.
type Projection[S cloner[S], T cloner[T], V any] struct {
	store  *Store
	kind   Collection[S, T]
	all    func(*Tx) ([]Projected[V], error)  // derives all values, sorted by id
	one    func(tx *Tx, id string) (V, error) // derives one
	flight singleflight.Group                 // one reader brings the values up to date for all that wait

	mu    sync.RWMutex
	built bool
	rev   uint64         // of the objects; never one that is not published yet
	items []Projected[V] // sorted by id
}

// Projected is the value that is derived from one object.
type Projected[V any] struct {
	ID    string
	Value V
}

// NewProjection returns a Projection. Derive must not keep the object's maps and
// slices if it changes them. Nothing is read before the first Read.
func NewProjection[S cloner[S], T cloner[T], V any](s *Store, c Collection[S, T], derive func(v1.Object[S, T]) V) *Projection[S, T, V] {
	return &Projection[S, T, V]{store: s, kind: c,
		all: func(tx *Tx) ([]Projected[V], error) {
			list, err := c.List(tx)
			items := make([]Projected[V], len(list))
			for i, o := range list {
				items[i] = Projected[V]{o.Meta.ID, derive(o)}
			}
			return items, err
		},
		one: func(tx *Tx, id string) (value V, err error) {
			o, err := c.Get(tx, id)
			if err == nil {
				value = derive(o)
			}
			return value, err
		}}
}

// Read calls fn with the values of all objects, sorted by id, and the revision of the
// store that they are of. An object that cannot be decoded has none. Fn must not keep or
// change the slice, and must not block: a lock is held.
func (p *Projection[S, T, V]) Read(fn func(items []Projected[V], rev uint64)) error {
	if err := p.catchUp(); err != nil {
		return err
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	fn(p.items, p.rev)
	return nil
}

// Get returns the value of one object, and whether it has one.
func (p *Projection[S, T, V]) Get(id string) (value V, found bool, err error) {
	err = p.Read(func(items []Projected[V], _ uint64) {
		var i int
		if i, found = Search(items, id); found {
			value = items[i].Value
		}
	})
	return value, found, err
}

// Search returns the index of the first item whose id is not less than id, and whether
// it has that id.
func Search[V any](items []Projected[V], id string) (int, bool) {
	return slices.BinarySearchFunc(items, id, func(item Projected[V], id string) int { return strings.Compare(item.ID, id) })
}

// catchUp returns when the values are those of the revision that was published when it
// was called, or of a later one.
func (p *Projection[S, T, V]) catchUp() error {
	for since := p.store.Revision(); ; {
		if p.store.closed.Load() {
			return ErrClosed
		}
		p.mu.RLock()
		current := p.built && p.rev >= since
		p.mu.RUnlock()
		if current {
			return nil
		}
		if _, err, _ := p.flight.Do("", p.update); err != nil {
			return err
		}
	}
}

const (
	publishTries = 64                     // views that may be ahead of the published revision, one after the other
	publishWait  = 100 * time.Millisecond // for the commit that a view has seen to be published
)

// update derives the values of the objects that have changed, or of all of them.
func (p *Projection[S, T, V]) update() (any, error) {
	for range publishTries {
		_, more := p.store.changes.newest()
		next, err := p.changed()
		if err == nil {
			p.apply(next)
			return nil, nil
		}
		if !errors.Is(err, errUnpublished) {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(context.Background(), publishWait)
		p.store.wait(ctx, more)
		cancel()
	}
	return nil, fmt.Errorf("%w: %w", ErrFailed, errUnpublished)
}

// errUnpublished reports that a view is ahead of the watchers. Its commit may still
// fail, so its objects must not be kept.
var errUnpublished = errors.New("a commit is stored and not published")

// projectedChange is what brings items to a revision.
type projectedChange[V any] struct {
	rev   uint64
	all   bool
	items []Projected[V]  // derived anew, sorted by id
	gone  map[string]bool // the changed ids without a value
}

// changed derives the values that have changed. Only one goroutine at a time calls it.
func (p *Projection[S, T, V]) changed() (next projectedChange[V], err error) {
	p.mu.RLock()
	built, since := p.built, p.rev
	p.mu.RUnlock()
	err = p.store.View(func(tx *Tx) error {
		next.rev = tx.Revision()
		if newest, _ := p.store.changes.newest(); newest.Revision < next.rev {
			return errUnpublished
		}
		ids, kept := changedIDs(p.store.changes, p.kind.kind(), since, next.rev)
		if next.all = !built || !kept; next.all {
			next.items, err = p.all(tx)
			return err
		}
		p.deriveSome(tx, ids, &next)
		return tx.err
	})
	return next, err
}

func (p *Projection[S, T, V]) deriveSome(tx *Tx, ids []string, next *projectedChange[V]) {
	next.gone = map[string]bool{}
	for _, id := range ids {
		value, err := p.one(tx, id)
		if err == nil {
			next.items = append(next.items, Projected[V]{id, value})
			continue
		}
		next.gone[id] = true
		if !errors.Is(err, ErrNotFound) {
			p.store.log.Error("cannot read an object", "kind", p.kind.kind(), "id", id, "err", err)
		}
	}
}

// apply replaces the values that have changed.
func (p *Projection[S, T, V]) apply(next projectedChange[V]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.built, p.rev = true, next.rev
	if next.all {
		p.items = next.items
		return
	}
	if len(next.gone) > 0 {
		p.items = slices.DeleteFunc(p.items, func(item Projected[V]) bool { return next.gone[item.ID] })
	}
	var added []Projected[V]
	for _, item := range next.items {
		if i, found := Search(p.items, item.ID); found {
			p.items[i] = item
		} else {
			added = append(added, item)
		}
	}
	if len(added) > 0 {
		p.items = append(p.items, added...)
		slices.SortFunc(p.items, func(a, b Projected[V]) int { return strings.Compare(a.ID, b.ID) })
	}
}

// changedIDs returns the ids of the objects of a kind that have changed after revision
// since, up to revision upTo, which must be published. It returns false if such changes
// are no longer kept.
func changedIDs(changes *ring[Change], kind string, since, upTo uint64) ([]string, bool) {
	pos, kept := position(changes, since)
	ids := map[string]bool{}
	for kept {
		var chunk []Change
		if chunk, _, kept = changes.from(pos, chunkSize); len(chunk) == 0 {
			break
		}
		pos += uint64(len(chunk))
		for _, c := range chunk {
			if c.Kind == kind && c.Revision > since && c.Revision <= upTo {
				ids[c.ID] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(ids)), kept
}
