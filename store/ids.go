package store

import (
	"slices"
	"strings"
)

// IDsBeginning returns the ids of Collection.IDs that begin with text, and reads no others.
func IDsBeginning[S cloner[S], T cloner[T]](tx *Tx, c Collection[S, T], text string) []string {
	var ids []string
	kind := c.kind() + "/"
	for e := range tx.scan(kind+text, kind+text) {
		if id, ok := strings.CutSuffix(e.key[len(kind):], "/spec"); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids) // a key has a slash after the id, which sorts after a dash
	return ids
}

// listed returns what IDs returns, and the revision of the store that they are of. It
// scans the kind once: the sources of all controllers list it when the daemon starts,
// and a scan reads the values beside the keys.
func listed[S cloner[S], T cloner[T]](s *Store, c Collection[S, T]) (ids []string, rev uint64, err error) {
	kept, found := s.ids.Load(c.kind())
	if !found {
		kept, _ = s.ids.LoadOrStore(c.kind(), newIDs(s, c))
	}
	err = kept.(*Projection[S, T, struct{}]).Read(func(items []Projected[struct{}], at uint64) {
		ids, rev = make([]string, len(items)), at
		for i, item := range items {
			ids[i] = item.ID
		}
	})
	return ids, rev, err
}

// newIDs returns a projection that decodes no object.
func newIDs[S cloner[S], T cloner[T]](s *Store, c Collection[S, T]) *Projection[S, T, struct{}] {
	return &Projection[S, T, struct{}]{store: s, kind: c,
		all: func(tx *Tx) ([]Projected[struct{}], error) {
			ids := c.IDs(tx)
			items := make([]Projected[struct{}], len(ids))
			for i, id := range ids {
				items[i].ID = id
			}
			return items, tx.err
		},
		one: func(tx *Tx, id string) (struct{}, error) {
			_, err := tx.find(c.specKey(id))
			return struct{}{}, err
		}}
}
