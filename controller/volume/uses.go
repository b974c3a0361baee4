package volume

import (
	"context"
	"errors"
	"sync"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

// Uses knows which containers use which volume, so that a volume's reconcile
// need not read every container. It follows the store as a source.
type Uses struct {
	store *store.Store

	mu sync.Mutex
	by map[string]use // by internal_id
}

type use struct {
	volume string
	disk   int64 // limits.disk, bytes
}

// NewUses makes a Uses that knows nothing until Source runs.
func NewUses(s *store.Store) *Uses { return &Uses{store: s, by: map[string]use{}} }

// Source names the volumes of containers that are new, changed or gone.
func (u *Uses) Source() controller.Source {
	source := store.Containers.Source(u.store, store.SpecChanged, store.Purged)
	return func(ctx context.Context, notify func(string)) error {
		return source(ctx, func(id string) {
			before, after := u.look(id)
			for _, volume := range []string{before, after} {
				if volume != "" {
					notify(volume)
				}
			}
		})
	}
}

// look reads one container. An error of the store leaves what was known.
func (u *Uses) look(id string) (before, after string) {
	var now use
	err := u.store.View(func(tx *store.Tx) error {
		c, err := store.Containers.Get(tx, id)
		now = use{c.Spec.VolumeID, c.Spec.Limits.Disk}
		return err
	})
	u.mu.Lock()
	defer u.mu.Unlock()
	before = u.by[id].volume
	switch {
	case err == nil:
		u.by[id] = now
	case errors.Is(err, store.ErrNotFound):
		delete(u.by, id)
	}
	return before, now.volume
}

// any asks the store itself: a directory must not go while the source lags.
func (u *Uses) any(volume string) bool {
	used := false
	err := u.store.View(func(tx *store.Tx) error {
		all, err := store.Containers.List(tx)
		for _, c := range all {
			used = used || c.Spec.VolumeID == volume
		}
		return err
	})
	return used || err != nil
}

// limit is the smallest of the volume's limit and those of its containers; 0 is none.
func (u *Uses) limit(v v1.Volume) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	limit := v.Spec.SizeLimit
	for _, use := range u.by {
		if use.volume == v.Meta.ID && use.disk > 0 && (limit == 0 || use.disk < limit) {
			limit = use.disk
		}
	}
	return limit
}
