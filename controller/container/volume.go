package container

import (
	"context"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

// Volumes returns a source of the containers whose volume has lost its directory, or has
// it again. The resync makes up for what an error of the store hides.
func Volumes(s *store.Store) controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		return store.Changes(store.Volumes, s, store.StatusChanged)(ctx, func(id string) {
			_ = s.View(func(tx *store.Tx) error {
				v, err := store.Volumes.Get(tx, id)
				if err != nil {
					return err
				}
				for _, user := range store.Containers.IDsBy(tx, id) {
					if c, err := store.Containers.Get(tx, user); err == nil && volumeMissing(c) != lostVolume(c, v.Status) {
						notify(user)
					}
				}
				return nil
			})
		})
	}
}

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

// volumeMissing reports whether the container's status has that the directory of its
// volume is missing.
func volumeMissing(c v1.Container) bool {
	return v1.FindCondition(c.Status.Conditions, v1.VolumeReady).Status == v1.False
}

// lostVolume reports whether the directory of a container's volume is missing. While it
// is unknown, because the directory cannot be checked, the last record holds.
func lostVolume(c v1.Container, v v1.VolumeStatus) bool {
	return v.Missing() || volumeMissing(c) && !v.Ready()
}

// recordVolumeReady records that the directory of the volume is missing, or is there again,
// with an event. The container is not stopped: a directory that was moved is still the
// one that it uses.
func (t *task) recordVolumeReady() error {
	status, reason := v1.False, reasonVolumeMissing
	text := "the directory of the volume is missing on the host, and what the container writes may be lost: stop the container, then put the directory back or restore a backup"
	if !t.o.VolumeMissing {
		status, reason, text = v1.True, reasonPresent, "the directory of the volume is there again"
		if t.o.Server.Running {
			text += ": restart the container, unless the same directory was moved back; until then it uses the one before"
		}
	}
	return t.amend(func(st *v1.ContainerStatus, now time.Time) {
		before := v1.FindCondition(st.Conditions, v1.VolumeReady).Message
		switch {
		case st.Phase.Active(), t.o.VolumeMissing && st.Message == "":
			st.Message = text
		case st.Message == before:
			st.Message = ""
		}
		setCondition(st, now, v1.VolumeReady, status, reason, text)
	}, message{reason, text})
}
