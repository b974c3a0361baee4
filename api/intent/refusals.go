package intent

import (
	"fmt"

	v1 "berth/api/v1"
)

// heldBy returns the refusal of an object that a container holds.
func heldBy(container string, code v1.Code, text string) error {
	refusal := func(who string) *v1.Error { return &v1.Error{Code: code, Message: fmt.Sprintf("%s by %s", text, who)} }
	return &v1.HeldError{Container: container, Full: refusal("container " + container), Redacted: refusal("another container")}
}

// errPortBound returns the refusal of a port that a container holds.
func errPortBound(container string) error {
	return heldBy(container, v1.PortBound, "Port is already bound")
}

// errVolumeInUse returns the refusal to delete the volume of a container.
func errVolumeInUse(container string) error {
	return heldBy(container, v1.VolumeInUse, "Volume is in use")
}
