package store

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
)

// incarnation is the period in which the revisions of a store are unique. A store
// that was restored from a copy continues from an older revision and assigns the same
// numbers again: so it begins another incarnation.
type incarnation struct {
	ID   string `json:"id"`   // random
	From uint64 `json:"from"` // the revision that it continued from
}

// Incarnations are those of a store.
type Incarnations struct {
	store  *Store
	opened uint64 // the revision at which the store was opened
}

// all returns the incarnations, the present one last.
func (h *Incarnations) all() []incarnation {
	all, _ := incarnationsKey.get(h.store.Read()) // load has returned its error
	return all
}

// Incarnation returns the random id of the present incarnation.
func (h *Incarnations) Incarnation() string { return present(h.all()) }

func present(all []incarnation) string {
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1].ID
}

// Epoch returns the id of the store and its incarnation. Revisions and seqs are
// unique within an epoch. It survives restarts and kills, and changes when the store
// turns out to be an older copy of itself.
func (h *Incarnations) Epoch() string { return h.store.id + "-" + h.Incarnation() }

// Remembers reports whether the store, or the one that it is a copy of, was at a
// revision of an incarnation. An empty incarnation is the first one. If it was not, a
// diverged copy of the store was.
func (h *Incarnations) Remembers(incarnation string, revision uint64) bool {
	all := h.all()
	for i, in := range all {
		if in.ID != incarnation && (incarnation != "" || i > 0) {
			continue
		}
		if i+1 < len(all) {
			return revision <= all[i+1].From
		}
		return revision <= h.store.Revision()
	}
	return false
}

// Witness is Remembers for a resource that was found on the host. If it was created
// in the present incarnation at a revision that the store has not reached, the store
// is an older copy that was not recognised: it begins another incarnation, from the
// revision at which it was opened.
func (h *Incarnations) Witness(incarnation string, revision uint64) (known bool, err error) {
	if h.Remembers(incarnation, revision) {
		return true, nil
	}
	all := h.all()
	if incarnation != present(all) && (incarnation != "" || len(all) != 1) {
		return false, nil
	}
	h.store.log.Error("the store is an older copy: a resource was created at a revision that it has not reached; it continues in a new epoch",
		"revision", h.store.Revision(), "seen", revision)
	return false, h.begin(present(all), h.opened)
}

// begin begins an incarnation that continues from a revision, if the present one is still
// the given one; else another goroutine has begun it.
func (h *Incarnations) begin(after string, from uint64) error {
	id := make([]byte, 4)
	rand.Read(id) // never fails
	return h.store.Update(func(tx *Tx) error {
		all, err := incarnationsKey.get(tx)
		if err != nil || present(all) != after {
			return err
		}
		return incarnationsKey.set(tx, append(slices.Clone(all), incarnation{ID: hex.EncodeToString(id), From: from}))
	})
}
