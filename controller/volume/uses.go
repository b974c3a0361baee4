package volume

import (
	"context"
	"errors"
	"sync"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

// Uses maps containers to the volumes that they use. It is a source of the volumes
// that a change of a container affects.
type Uses struct {
	store *store.Store

	mu sync.Mutex
	of map[string]string // the volume of each container, by internal_id
}

// NewUses returns a Uses that is empty until its Source runs.
func NewUses(s *store.Store) *Uses { return &Uses{store: s, of: map[string]string{}} }

// Source returns a source that names the volumes of containers that are created, changed
// or purged.
func (u *Uses) Source() controller.Source {
	source := store.Containers.Source(u.store, store.SpecChanged, store.Purged)
	return func(ctx context.Context, notify func(string)) error {
		return source(ctx, func(id string) {
			before, after := u.observe(id)
			for _, volume := range []string{before, after} {
				if volume != "" {
					notify(volume)
				}
			}
		})
	}
}

// observe reads one container and returns its volume before and after. After an error of
// the store the mapping stays as it was.
func (u *Uses) observe(id string) (before, after string) {
	err := u.store.View(func(tx *store.Tx) error {
		c, err := store.Containers.Get(tx, id)
		after = c.Spec.VolumeID
		return err
	})
	u.mu.Lock()
	defer u.mu.Unlock()
	before = u.of[id]
	switch {
	case err == nil:
		u.of[id] = after
	case errors.Is(err, store.ErrNotFound):
		delete(u.of, id)
	}
	return before, after
}

// any reports whether a container uses a volume, or may use it because the store cannot
// be read. It reads the store, because the mapping may lag.
func (u *Uses) any(volume string) bool {
	used := false
	err := u.store.View(func(tx *store.Tx) error {
		used = len(store.Containers.IDsBy(tx, volume))+len(store.VolumeHolders(tx, volume)) > 0
		return nil
	})
	return used || err != nil
}

// limitOf returns the smallest of the limits of a volume and its containers in bytes, or
// 0 for no limit. It ignores containers whose record is damaged.
func limitOf(tx *store.Tx, v v1.Volume) (int64, error) {
	containers, err := store.ListBy(tx, store.Containers, v.Meta.ID)
	var users []v1.ContainerSpec
	for _, c := range containers {
		users = append(users, c.Spec)
	}
	return v1.SmallestLimit(v.Spec, users), err
}
