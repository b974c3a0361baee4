package store

import (
	"errors"
	"slices"
	"strings"

	v1 "berth/api/v1"
)

// index has a key for each reference of an object of a kind. Its value is the
// first part of its keys after "index/".
type index string

// specIndex is the index of the references in the specs of a kind.
func specIndex(kind string) index { return index(kind) }

// statusIndex is the index of the references in the statuses of a kind.
func statusIndex(kind string) index { return index(kind + "-status") }

// specRef returns the id that a spec refers to, for IDsBy, or "".
func specRef(spec any) string {
	switch s := spec.(type) {
	case v1.ContainerSpec:
		return s.VolumeID
	case v1.PullSpec:
		return s.VolumeID
	case v1.BackupSpec:
		return s.VolumeID
	case v1.RestoreSpec:
		return s.BackupID
	}
	return ""
}

// statusRefs returns the ids that a status refers to, for VolumeHolders.
func statusRefs(status any) []string {
	if s, ok := status.(v1.ContainerStatus); ok {
		return s.Volumes()
	}
	return nil
}

// keyIndex is the index of the public keys in the specs of tokens.
const keyIndex index = "token-key"

// keyRefs returns the references of a spec for keyIndex: a hash of each public key.
func keyRefs(spec any) (refs []string) {
	if s, ok := spec.(v1.TokenSpec); ok {
		for _, key := range s.SSHKeys {
			refs = append(refs, v1.Secret(key).Hash())
		}
	}
	return refs
}

// TokensByKey returns the ids of the tokens that have a public key, sorted.
func TokensByKey(tx *Tx, key string) []string { return keyIndex.ids(tx, v1.Secret(key).Hash()) }

func (x index) prefix() string { return "index/" + string(x) + "/" }

func (x index) key(ref, id string) string { return x.prefix() + ref + "/" + id }

// move changes the reference of an object. An empty one is none.
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

// update changes the references of an object. It writes all of after: the keys are
// missing if an older version of berth wrote the status.
func (x index) update(tx *Tx, id string, before, after []string) error {
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

// purge searches the whole index for an object, and removes it.
func (x index) purge(tx *Tx, id string) error {
	var keys []string
	for e := range tx.scan(x.prefix(), x.prefix()) {
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

// ids returns the ids of the objects with a reference, sorted.
func (x index) ids(tx *Tx, ref string) (ids []string) {
	prefix := x.key(ref, "")
	for e := range tx.scan(prefix, prefix) {
		ids = append(ids, e.key[len(prefix):])
	}
	return ids
}

// IDsBy returns the ids of the objects whose spec refers to ref, sorted: the
// containers that use a volume, its backups, or the restores of a backup. Its cost is proportional to their number, not to
// the number of all objects.
func (c Collection[S, T]) IDsBy(tx *Tx, ref string) []string {
	return specIndex(c.kind()).ids(tx, ref)
}

// ListBy returns the objects that IDsBy names, sorted by id. Like List, it leaves out and
// logs an object that cannot be decoded, so that it blocks no other.
func ListBy[S cloner[S], T cloner[T]](tx *Tx, c Collection[S, T], ref string) (list []v1.Object[S, T], err error) {
	for _, id := range c.IDsBy(tx, ref) {
		o, err := c.Get(tx, id)
		if errors.Is(err, ErrDamaged) {
			tx.store.log.Error("cannot read an object", "kind", c.kind(), "id", id, "err", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, o)
	}
	return list, tx.err
}

// VolumeHolders returns the ids of the containers whose status names a volume,
// sorted: their engine containers may have it mounted.
func VolumeHolders(tx *Tx, volume string) []string {
	return statusIndex(Containers.kind()).ids(tx, volume)
}

// unindex removes an object from the indexes of its kind, also if its records
// cannot be decoded.
func (c Collection[S, T]) unindex(tx *Tx, id string) error {
	if err := unindexStatus[T](tx, c.kind(), c.statusKey(id), id); err != nil {
		return err
	}
	x := specIndex(c.kind())
	r, _, err := recordToChange[S](tx, c.specKey(id))
	if err != nil {
		return errors.Join(x.purge(tx, id), keyIndex.purge(tx, id))
	}
	return errors.Join(x.move(tx, id, specRef(r.Value), ""), keyIndex.update(tx, id, keyRefs(r.Value), nil))
}

func unindexStatus[T any](tx *Tx, kind, key, id string) error {
	x := statusIndex(kind)
	r, _, err := recordToChange[T](tx, key)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return x.purge(tx, id)
	}
	return x.update(tx, id, statusRefs(r.Value), nil)
}
