package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "berth/api/v1"
)

// The kinds of objects.
const (
	Containers Collection[v1.ContainerSpec, v1.ContainerStatus] = "container"
	Volumes    Collection[v1.VolumeSpec, v1.VolumeStatus]       = "volume"
	Pools      Collection[v1.PoolSpec, v1.PoolStatus]           = "pool"
	Tokens     Collection[v1.TokenSpec, v1.TokenStatus]         = "token"
	Backups    Collection[v1.BackupSpec, v1.BackupStatus]       = "backup"
	Policies   Collection[v1.PolicySpec, v1.PolicyStatus]       = "policy" // of backups; the id is the volume's
	Restores   Collection[v1.RestoreSpec, v1.RestoreStatus]     = "restore"
	Pulls      Collection[v1.PullSpec, v1.PullStatus]           = "pull"
)

// Collection reads and writes the objects of one kind, which is its value. The
// caller owns what it returns. Errors name the object; those that a method does not
// name wrap ErrFailed.
type Collection[S cloner[S], T cloner[T]] string

// cloner is a spec or a status. Clone returns a copy that shares no memory.
type cloner[V any] interface{ Clone() V }

func (c Collection[S, T]) kind() string               { return string(c) }
func (c Collection[S, T]) specKey(id string) string   { return c.kind() + "/" + id + "/spec" }
func (c Collection[S, T]) statusKey(id string) string { return c.kind() + "/" + id + "/status" }

func (c Collection[S, T]) wrap(id string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", c.kind(), id, err)
}

// Get returns one object, or ErrNotFound.
func (c Collection[S, T]) Get(tx *Tx, id string) (v1.Object[S, T], error) {
	spec, err := readRecord[S](tx, c.specKey(id))
	if err != nil {
		return v1.Object[S, T]{}, c.wrap(id, err)
	}
	status, err := readRecord[T](tx, c.statusKey(id))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return v1.Object[S, T]{}, c.wrap(id, err)
	}
	return join(spec, status), nil
}

// join makes an object of its two records. It has the date of the later one.
func join[S cloner[S], T cloner[T]](spec record[S], status record[T]) v1.Object[S, T] {
	o := v1.Object[S, T]{Meta: spec.Meta, Spec: spec.Value, Status: status.Value}
	o.Meta.Revision = max(spec.Meta.Revision, status.Meta.Revision)
	if status.Meta.UpdatedAt.After(o.Meta.UpdatedAt) {
		o.Meta.UpdatedAt = status.Meta.UpdatedAt
	}
	return o
}

// IDs returns the ids of all objects, sorted, including those that List leaves out
// because they cannot be read.
func (c Collection[S, T]) IDs(tx *Tx) []string {
	return IDsBeginning(tx, c, "")
}

// List returns all objects, sorted by id, in one pass over the kind. An object that
// cannot be decoded is left out and logged, so that it blocks no other.
func (c Collection[S, T]) List(tx *Tx) ([]v1.Object[S, T], error) {
	var list []v1.Object[S, T]
	prefix := c.kind() + "/"
	for e := range tx.scan(prefix, prefix) {
		var err error
		if list, err = c.collect(tx, list, e); err != nil {
			tx.store.log.Error("cannot read an object", "key", e.key, "err", err)
		}
	}
	if tx.err != nil {
		return nil, fmt.Errorf("list %s: %w", c.kind(), tx.err)
	}
	slices.SortFunc(list, func(a, b v1.Object[S, T]) int { return strings.Compare(a.Meta.ID, b.Meta.ID) })
	return list, nil
}

// collect adds a record to the list: the spec of an object comes before its status.
// An object with a record that cannot be decoded is not in the list.
func (c Collection[S, T]) collect(tx *Tx, list []v1.Object[S, T], e entry) ([]v1.Object[S, T], error) {
	id, part, _ := strings.Cut(e.key[len(c.kind())+1:], "/")
	if part == "spec" {
		spec, err := load[S](tx, e)
		if err != nil {
			return list, err
		}
		return append(list, join(spec, record[T]{})), nil
	}
	last := len(list) - 1
	if last < 0 || list[last].Meta.ID != id {
		return list, nil
	}
	status, err := load[T](tx, e)
	if err != nil {
		return list[:last], err
	}
	list[last] = join(record[S]{list[last].Meta, list[last].Spec}, status)
	return list, nil
}
