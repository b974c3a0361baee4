package store

import (
	v1 "berth/api/v1"
)

// The rows of an index have no value. They are not stored: they come from the objects.
//
//	index/<kind>/<ref>/<id>              the spec of an object refers to another
//	index/<kind>-status/<ref>/<id>       the status of an object refers to another
//	index/token-key/<hash>/<id>          a token has the public key with this hash

func indexKey(name, ref string) string { return "index/" + name + "/" + ref + "/" }

// indexKeys returns the beginnings of the keys of an object in the indexes.
func (o *object[S, T]) indexKeys(kind string) (keys []string) {
	switch s := any(o.Spec).(type) {
	case v1.ContainerSpec:
		keys = append(keys, indexKey(kind, s.VolumeID))
	case v1.PullSpec:
		keys = append(keys, indexKey(kind, s.VolumeID))
	case v1.BackupSpec:
		keys = append(keys, indexKey(kind, s.VolumeID))
	case v1.RestoreSpec:
		keys = append(keys, indexKey(kind, s.BackupID))
	case v1.TokenSpec:
		for _, key := range s.SSHKeys {
			keys = append(keys, indexKey("token-key", v1.Secret(key).Hash()))
		}
	}
	if s, is := any(o.Status).(v1.ContainerStatus); is {
		for _, volume := range s.Volumes() {
			keys = append(keys, indexKey(kind+"-status", volume))
		}
	}
	return keys
}

func (o *object[S, T]) index(to *state, kind, id string) {
	for _, key := range o.indexKeys(kind) {
		to.rows.ReplaceOrInsert(row{key: key + id})
	}
}

func (o *object[S, T]) unindex(to *state, kind, id string) {
	for _, key := range o.indexKeys(kind) {
		to.rows.Delete(row{key: key + id})
	}
}

// indexed returns the ids in an index with a reference, sorted.
func (tx *Tx) indexed(name, ref string) (ids []string) {
	prefix := indexKey(name, ref)
	for key := range tx.from(prefix, "") {
		ids = append(ids, key[len(prefix):])
	}
	return ids
}

// IDsBy returns the ids of the objects whose spec refers to ref, sorted: the
// containers, backups or downloads of a volume, or the restores of a backup.
func (c Collection[S, T]) IDsBy(tx *Tx, ref string) []string { return tx.indexed(c.kind(), ref) }

// ListBy returns the objects that IDsBy names, sorted by id, except for those that cannot be
// decoded.
func (c Collection[S, T]) ListBy(tx *Tx, ref string) (list []v1.Object[S, T]) {
	for o := range c.Each(tx, c.IDsBy(tx, ref)) {
		list = append(list, o)
	}
	return list
}

// VolumeHolders returns the ids of the containers whose status names a volume,
// sorted: their engine containers may have it mounted.
func VolumeHolders(tx *Tx, volume string) []string {
	return tx.indexed(Containers.kind()+"-status", volume)
}

// TokensByKey returns the ids of the tokens that have a public key, sorted.
func TokensByKey(tx *Tx, key string) []string { return tx.indexed("token-key", v1.Secret(key).Hash()) }
