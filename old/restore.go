package container

import (
	"context"

	"berth/controller"
	"berth/store"
)

// Restores returns a source of the containers whose volumes are being restored, or were.
// The resync makes up for what an error of the store hides.
func Restores(s *store.Store) controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		return store.Changes(store.Restores, s)(ctx, func(id string) {
			_ = s.View(func(tx *store.Tx) error {
				o, err := store.Restores.Get(tx, id)
				if err != nil {
					return err
				}
				for _, user := range store.Containers.IDsBy(tx, o.Spec.VolumeID) {
					notify(user)
				}
				return nil
			})
		})
	}
}
