package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "berth/api/v1"
)

// The kinds of objects.
var (
	Containers = Collection[v1.ContainerSpec, v1.ContainerStatus]{"container"}
	Volumes    = Collection[v1.VolumeSpec, v1.VolumeStatus]{"volume"}
	Pools      = Collection[v1.PoolSpec, v1.PoolStatus]{"pool"}
	Tokens     = Collection[v1.TokenSpec, v1.TokenStatus]{"token"}
)

// Collection reads and writes the objects of one kind. What it returns is the
// caller's own. Errors name the object; those that it does not state itself
// wrap ErrFailed.
type Collection[S, T any] struct{ kind string }

// Kind is the word that Change.Kind holds for this collection.
func (c Collection[S, T]) Kind() string { return c.kind }

func (c Collection[S, T]) specKey(id string) string   { return c.kind + "/" + id + "/spec" }
func (c Collection[S, T]) statusKey(id string) string { return c.kind + "/" + id + "/status" }

func (c Collection[S, T]) wrap(id string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", c.kind, id, err)
}

// Get returns one object, or ErrNotFound.
func (c Collection[S, T]) Get(tx *Tx, id string) (v1.Object[S, T], error) {
	spec, _, err := readHalf[S](tx, c.specKey(id))
	if err != nil {
		return v1.Object[S, T]{}, c.wrap(id, err)
	}
	status, _, err := readHalf[T](tx, c.statusKey(id))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return v1.Object[S, T]{}, c.wrap(id, err)
	}
	return join(spec, status), nil
}

// join makes an object of its halves. The later of the two dates it.
func join[S, T any](spec half[S], status half[T]) v1.Object[S, T] {
	o := v1.Object[S, T]{Meta: spec.Meta, Spec: spec.Value, Status: status.Value}
	o.Meta.Revision = max(spec.Meta.Revision, status.Meta.Revision)
	if status.Meta.UpdatedAt.After(o.Meta.UpdatedAt) {
		o.Meta.UpdatedAt = status.Meta.UpdatedAt
	}
	return o
}

// IDs returns the ids of every object, sorted. Objects that List leaves out
// because they cannot be read are among them.
func (c Collection[S, T]) IDs(tx *Tx) []string {
	var ids []string
	prefix := c.kind + "/"
	for key := range tx.scan(prefix, prefix, false) {
		if id, ok := strings.CutSuffix(key[len(prefix):], "/spec"); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids) // a key has a slash after the id, which sorts after a dash
	return ids
}

// List returns every object, sorted by id, in one pass over the kind. One that
// cannot be decoded is left out and logged, so that it stalls no other.
func (c Collection[S, T]) List(tx *Tx) ([]v1.Object[S, T], error) {
	l := lister[S, T]{tx: tx}
	prefix := c.kind + "/"
	for key, value := range tx.scan(prefix, prefix, true) {
		id, part, _ := strings.Cut(key[len(prefix):], "/")
		l.add(id, part, value)
	}
	if tx.err != nil {
		return nil, fmt.Errorf("list %s: %w", c.kind, tx.err)
	}
	slices.SortFunc(l.list, func(a, b v1.Object[S, T]) int { return strings.Compare(a.Meta.ID, b.Meta.ID) })
	return l.list, nil
}

// lister joins halves as they come: the spec of an object, then its status.
type lister[S, T any] struct {
	tx   *Tx
	list []v1.Object[S, T]
}

func (l *lister[S, T]) add(id, part string, value []byte) {
	var err error
	switch {
	case part == "spec":
		var spec half[S]
		if spec, err = decode[S](value); err == nil {
			spec.Meta.ID = id
			l.list = append(l.list, join(spec, half[T]{}))
		}
	case len(l.list) > 0 && l.list[len(l.list)-1].Meta.ID == id:
		var status half[T]
		last := &l.list[len(l.list)-1]
		if status, err = decode[T](value); err != nil {
			l.list = l.list[:len(l.list)-1]
		} else {
			*last = join(half[S]{last.Meta, last.Spec}, status)
		}
	}
	if err != nil {
		l.tx.store.log.Error("object cannot be read", "id", id, "half", part, "err", err)
	}
}
