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
	Containers = Collection[v1.ContainerSpec, v1.ContainerStatus]{"container", v1.ContainerSpec.Clone, v1.ContainerStatus.Clone, volumeOf, v1.ContainerStatus.Volumes}
	Volumes    = Collection[v1.VolumeSpec, v1.VolumeStatus]{"volume", v1.VolumeSpec.Clone, v1.VolumeStatus.Clone, noRef[v1.VolumeSpec], noRefs[v1.VolumeStatus]}
	Pools      = Collection[v1.PoolSpec, v1.PoolStatus]{"pool", v1.PoolSpec.Clone, v1.PoolStatus.Clone, noRef[v1.PoolSpec], noRefs[v1.PoolStatus]}
	Tokens     = Collection[v1.TokenSpec, v1.TokenStatus]{"token", v1.TokenSpec.Clone, v1.TokenStatus.Clone, noRef[v1.TokenSpec], noRefs[v1.TokenStatus]}
)

// Collection reads and writes the objects of one kind. What it returns is the
// caller's own. Errors name the object; those that it does not state itself
// wrap ErrFailed.
type Collection[S, T any] struct {
	kind        string
	cloneSpec   func(S) S
	cloneStatus func(T) T
	ref         func(S) string   // what a spec refers to, for IDsBy; empty: nothing
	held        func(T) []string // what a status refers to, for VolumeHolders
}

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
	spec, err := readRecord(tx, c.specKey(id), c.cloneSpec)
	if err != nil {
		return v1.Object[S, T]{}, c.wrap(id, err)
	}
	status, err := readRecord(tx, c.statusKey(id), c.cloneStatus)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return v1.Object[S, T]{}, c.wrap(id, err)
	}
	return join(spec, status), nil
}

// join makes an object of its halves. The later of the two dates it.
func join[S, T any](spec record[S], status record[T]) v1.Object[S, T] {
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
	for e := range tx.scan(prefix, prefix) {
		if id, ok := strings.CutSuffix(e.key[len(prefix):], "/spec"); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids) // a key has a slash after the id, which sorts after a dash
	return ids
}

// List returns every object, sorted by id, in one pass over the kind. One that
// cannot be decoded is left out and logged, so that it stalls no other.
func (c Collection[S, T]) List(tx *Tx) ([]v1.Object[S, T], error) {
	var list []v1.Object[S, T]
	prefix := c.kind + "/"
	for e := range tx.scan(prefix, prefix) {
		var err error
		if list, err = c.collect(tx, list, e); err != nil {
			tx.store.log.Error("object cannot be read", "key", e.key, "err", err)
		}
	}
	if tx.err != nil {
		return nil, fmt.Errorf("list %s: %w", c.kind, tx.err)
	}
	slices.SortFunc(list, func(a, b v1.Object[S, T]) int { return strings.Compare(a.Meta.ID, b.Meta.ID) })
	return list, nil
}

// collect adds a half to the list: the spec of an object comes before its
// status. An object that has lost a half to an error is not in the list.
func (c Collection[S, T]) collect(tx *Tx, list []v1.Object[S, T], e entry) ([]v1.Object[S, T], error) {
	id, part, _ := strings.Cut(e.key[len(c.kind)+1:], "/")
	if part == "spec" {
		spec, err := load(tx, e, c.cloneSpec)
		if err != nil {
			return list, err
		}
		return append(list, join(spec, record[T]{})), nil
	}
	last := len(list) - 1
	if last < 0 || list[last].Meta.ID != id {
		return list, nil
	}
	status, err := load(tx, e, c.cloneStatus)
	if err != nil {
		return list[:last], err
	}
	list[last] = join(record[S]{list[last].Meta, list[last].Spec}, status)
	return list, nil
}
