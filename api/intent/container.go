package intent

import (
	"errors"

	v1 "berth/api/v1"
	"berth/store"
)

// errDeleting is the refusal of every verb on a container that is being deleted.
var errDeleting = &v1.Error{Code: v1.ContainerDeleting, Message: "Container is being deleted"}

// stillDeleting is the refusal to create a container again too early.
func stillDeleting(code v1.Code, id string) error {
	return v1.Errorf(code, "%s: create it again once GET /containers/%s answers 404", errDeleting.Message, id)
}

// FindContainer returns a container, even one that is being deleted, or
// v1.ErrContainerNotFound.
func FindContainer(tx *store.Tx, id string) (v1.Container, error) {
	o, err := store.Containers.Get(tx, id)
	if errors.Is(err, store.ErrNotFound) {
		return o, v1.ErrContainerNotFound
	}
	return o, err
}

// findActive returns a container that is not being deleted, and that no transfer has stopped.
func findActive(tx *store.Tx, id string) (v1.Container, error) {
	o, err := FindContainer(tx, id)
	switch {
	case err != nil:
		return o, err
	case o.Meta.Deleted:
		return o, errDeleting
	}
	return o, checkStays(tx, o.Spec.VolumeID)
}

// checkStays returns v1.ErrTransferring if a transfer has reserved a volume, and has stopped its container or is about to, or if
// the volume arrives.
func checkStays(tx *store.Tx, volume string) error {
	if v1.IsTransfer(store.Restoring(tx, volume)) {
		return v1.ErrTransferring
	}
	return nil
}

// findStaying returns a container that no transfer has stopped.
func findStaying(tx *store.Tx, id string) (v1.Container, error) {
	o, err := FindContainer(tx, id)
	if err == nil {
		err = checkStays(tx, o.Spec.VolumeID)
	}
	return o, err
}

// CreateContainer stores a new container, claims its ports, and requests its
// installation. With power "running" a run follows. Its refusals are v1.FieldErrors,
// v1.ErrVolumeNotFound, v1.ErrAmbiguousVolume, v1.ErrTransferring, v1.ErrPortNotInPool and the codes
// ContainerExists and PortBound.
func CreateContainer(s store.Writer, p Policy, id string, spec v1.ContainerSpec) error {
	var f v1.FieldErrors
	CheckContainer(&f, p, id, &spec)
	if err := f.Err(); err != nil {
		return err
	}
	return s.Update(func(tx *store.Tx) error {
		volume, err := FindVolume(tx, spec.VolumeID)
		if err != nil {
			return err
		}
		switch _, err := findActive(tx, id); {
		case err == nil:
			return v1.ErrContainerExists
		case errors.Is(err, errDeleting):
			return stillDeleting(v1.ContainerExists, id)
		case !errors.Is(err, v1.ErrContainerNotFound):
			return err
		}
		if err := checkPorts(tx, id, spec.Ports); err != nil {
			return err
		}
		spec.VolumeID = volume.Meta.ID
		return create(tx, id, initialSpec(spec))
	})
}

// initialSpec returns the spec of a new container.
func initialSpec(spec v1.ContainerSpec) v1.ContainerSpec {
	spec.InstallGeneration, spec.RunGeneration, spec.KillGeneration = 1, 0, 0
	if spec.Power == v1.PowerOn {
		spec.RunGeneration = 1
	} else {
		spec.Power = v1.PowerOff
	}
	return spec
}

func create(tx *store.Tx, id string, spec v1.ContainerSpec) error {
	if arriving(tx, id) != "" {
		return v1.ErrTransferring
	}
	if err := checkStays(tx, spec.VolumeID); err != nil {
		return err
	}
	if err := claim(tx, id, nil, spec.Ports); err != nil {
		return err
	}
	spec.RequestedBy = tx.Actor()
	return store.Containers.Create(tx, id, spec)
}

// DeleteContainer requests the deletion of a container: it is killed and removed. Its
// claims and schedules end at once. A repeated call changes nothing.
func DeleteContainer(s store.Writer, id string) error {
	return s.Update(func(tx *store.Tx) error {
		o, err := findStaying(tx, id)
		if err != nil {
			return err
		}
		return deleteContainer(tx, o)
	})
}

// DeleteContainerAndVolume is DeleteContainer for a container and its volume. If another container
// uses the volume the code is VolumeInUse, and nothing is changed.
func DeleteContainerAndVolume(s store.Writer, id string) error {
	return s.Update(func(tx *store.Tx) error {
		o, err := findStaying(tx, id)
		if err != nil {
			return err
		}
		if err := deleteVolumeOf(tx, o); err != nil {
			return err
		}
		return deleteContainer(tx, o)
	})
}

// TakeBackContainer deletes a new container whose image was not found. It does
// nothing and returns false if the image has changed since, or if the id belongs to
// another container.
func TakeBackContainer(s store.Writer, judged v1.Container) (taken bool, err error) {
	err = s.Update(func(tx *store.Tx) error {
		o, err := FindContainer(tx, judged.Meta.ID)
		taken = err == nil && o.Meta.UID == judged.Meta.UID && o.Spec.Image == judged.Spec.Image
		if !taken {
			return err
		}
		return deleteContainer(tx, o)
	})
	if errors.Is(err, v1.ErrContainerNotFound) {
		return true, nil
	}
	return taken, err
}

func deleteContainer(tx *store.Tx, o v1.Container) error {
	if o.Meta.Deleted {
		return nil
	}
	if err := claim(tx, o.Meta.ID, o.Spec.Ports, nil); err != nil {
		return err
	}
	err := setSpec(tx, o.Meta.ID, func(s *v1.ContainerSpec) error {
		kill(s)
		s.RequestedBy = tx.Actor()
		return nil
	})
	return errors.Join(err, purgeSchedules(tx, o.Meta.ID), store.Containers.Delete(tx, o.Meta.ID))
}

// deleteVolumeOf requests the deletion of the volume of container o. The controller
// of the volume waits until no container uses it.
func deleteVolumeOf(tx *store.Tx, o v1.Container) error {
	for _, by := range HoldersOf(tx, o.Spec.VolumeID) {
		if by != o.Meta.ID {
			return errVolumeInUse(by)
		}
	}
	if _, err := getVolume(tx, o.Spec.VolumeID); errors.Is(err, v1.ErrVolumeNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	return deleteVolume(tx, o.Spec.VolumeID)
}

// errPortBound returns the refusal of a port that a container holds. Only tokens that are not
// limited to containers change ports, so that it may name the container.
func errPortBound(container string) error {
	return v1.Errorf(v1.PortBound, "Port is already bound by container %s", container)
}

// errVolumeInUse returns the refusal to delete the volume of a container, which may name it for
// the same reason.
func errVolumeInUse(container string) error {
	return v1.Errorf(v1.VolumeInUse, "Volume is in use by container %s", container)
}
