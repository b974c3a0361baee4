package store

import (
	"errors"
	"slices"
	"strings"

	v1 "berth/api/v1"
)

// index has a key for each object of a kind whose spec refers to something.
type index struct{ kind string }

// volumeOf is what a container refers to.
func volumeOf(s v1.ContainerSpec) string { return s.VolumeID }

// noRefs is for statuses that refer to nothing.
func noRefs[T any](T) []string { return nil }

// noRef is for specs that refer to nothing.
func noRef[S any](S) string { return "" }

func (x index) key(ref, id string) string { return "index/" + x.kind + "/" + ref + "/" + id }

// move takes an object from one ref to another. An empty one is none.
func (x index) move(tx *Tx, id, from, to string) error {
	if from == to {
		return nil
	}
	if from != "" {
		if err := tx.remove(x.key(from, id)); err != nil {
			return err
		}
	}
	if to == "" {
		return nil
	}
	return tx.set(x.key(to, id), []byte{})
}

// purge searches the whole index for an object, and removes it.
func (x index) purge(tx *Tx, id string) error {
	var keys []string
	prefix := "index/" + x.kind + "/"
	for e := range tx.scan(prefix, prefix) {
		if strings.HasSuffix(e.key, "/"+id) {
			keys = append(keys, e.key)
		}
	}
	for _, key := range keys {
		if err := tx.remove(key); err != nil {
			return err
		}
	}
	return nil
}

// IDsBy returns the ids of the objects whose spec refers to ref, sorted: the
// containers that use a volume. It costs as much as there are of them, however
// many objects there are.
func (c Collection[S, T]) IDsBy(tx *Tx, ref string) (ids []string) {
	prefix := index{c.kind}.key(ref, "")
	for e := range tx.scan(prefix, prefix) {
		ids = append(ids, e.key[len(prefix):])
	}
	return ids
}

// VolumeHolders returns the ids of the containers whose status names a volume,
// sorted: their containers on the engine may have it mounted.
func VolumeHolders(tx *Tx, volume string) (ids []string) {
	prefix := holding(Containers.kind).key(volume, "")
	for e := range tx.scan(prefix, prefix) {
		ids = append(ids, e.key[len(prefix):])
	}
	return ids
}

// holding is the index of what the statuses of a kind refer to.
func holding(kind string) index { return index{kind + "-status"} }

// hold keeps the index of what statuses refer to. All of after is written: it
// is absent where an older version of berth wrote the status.
func (x index) hold(tx *Tx, id string, before, after []string) error {
	for _, ref := range before {
		if slices.Contains(after, ref) {
			continue
		}
		if err := x.move(tx, id, ref, ""); err != nil {
			return err
		}
	}
	for _, ref := range after {
		if err := x.move(tx, id, "", ref); err != nil {
			return err
		}
	}
	return nil
}

// unindex removes an object from the index of its kind, also one whose spec
// cannot be decoded.
func (c Collection[S, T]) unindex(tx *Tx, id string) error {
	if err := unhold(tx, c, id); err != nil {
		return err
	}
	h, _, err := recordToChange[S](tx, c.specKey(id))
	if err != nil {
		return index{c.kind}.purge(tx, id)
	}
	return index{c.kind}.move(tx, id, c.ref(h.Value), "")
}

func unhold[S, T any](tx *Tx, c Collection[S, T], id string) error {
	h, _, err := recordToChange[T](tx, c.statusKey(id))
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return holding(c.kind).purge(tx, id)
	}
	return holding(c.kind).hold(tx, id, c.held(h.Value), nil)
}
