package store

import (
	v1 "berth/api/v1"
)

// The rows of an index have no value. They are not stored: they come from the objects.
//
//	index/<kind>/spec/<key>/<id>      the spec of an object has a key
//	index/<kind>/status/<key>/<id>    the status of an object has a key

// keyed is the pointer to a spec or a status by whose keys, such as the id of another object, its object is found.
type keyed interface{ Keys() []string }

func (c Collection[S, T]) specIndex(key string) string {
	return "index/" + c.kind() + "/spec/" + key + "/"
}
func (c Collection[S, T]) statusIndex(key string) string {
	return "index/" + c.kind() + "/status/" + key + "/"
}

// indexRows returns the rows of an object in the indexes.
func (c Collection[S, T]) indexRows(o *object[S, T]) (rows []row) {
	if s, is := any(&o.Spec).(keyed); is {
		for _, key := range s.Keys() {
			rows = append(rows, row{key: c.specIndex(key) + o.Meta.ID})
		}
	}
	if s, is := any(&o.Status).(keyed); is {
		for _, key := range s.Keys() {
			rows = append(rows, row{key: c.statusIndex(key) + o.Meta.ID})
		}
	}
	return rows
}

// keep puts an object into a state, in place of the one before.
func (c Collection[S, T]) keep(to *state, o *object[S, T]) {
	if old, found := to.rows.ReplaceOrInsert(row{c.key(o.Meta.ID), o}); found {
		c.unindex(to, c.of(old.value))
	}
	for _, r := range c.indexRows(o) {
		to.rows.ReplaceOrInsert(r)
	}
}

func (c Collection[S, T]) unindex(to *state, o *object[S, T]) {
	for _, r := range c.indexRows(o) {
		to.rows.Delete(r)
	}
}

// indexed returns the ids in an index with a key, sorted.
func (tx *Tx) indexed(prefix string) (ids []string) {
	for key := range tx.from(prefix, "") {
		ids = append(ids, key[len(prefix):])
	}
	return ids
}

// IDsBy returns the ids of the objects whose spec has a key, sorted: the containers, backups or
// downloads of a volume, or the restores of a backup.
func (c Collection[S, T]) IDsBy(tx *Tx, key string) []string { return tx.indexed(c.specIndex(key)) }

// ListBy returns the objects that IDsBy names, sorted by id, except for those that cannot be
// decoded.
func (c Collection[S, T]) ListBy(tx *Tx, key string) (list []v1.Object[S, T]) {
	for o := range c.Each(tx, c.IDsBy(tx, key)) {
		list = append(list, o)
	}
	return list
}

// VolumeHolders returns the ids of the containers whose status names a volume,
// sorted: their engine containers may have it mounted.
func VolumeHolders(tx *Tx, volume string) []string { return tx.indexed(Containers.statusIndex(volume)) }

// DeniedFiles returns the denied_files of the containers that use a volume.
func DeniedFiles(tx *Tx, volume string) (lists [][]string) {
	for _, c := range Containers.ListBy(tx, volume) {
		if len(c.Spec.DeniedFiles) > 0 {
			lists = append(lists, c.Spec.DeniedFiles)
		}
	}
	return lists
}

// TokensByKey returns the ids of the tokens that have a public key, sorted.
func TokensByKey(tx *Tx, key string) []string { return Tokens.IDsBy(tx, v1.Secret(key).Hash()) }
