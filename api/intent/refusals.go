package intent

import v1 "berth/api/v1"

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
