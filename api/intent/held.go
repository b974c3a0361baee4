package intent

import (
	"errors"
	"fmt"

	v1 "berth/api/v1"
)

// held is the refusal of something that a container holds.
type held struct {
	container string
	told      *v1.Error // names the container
	hidden    *v1.Error // does not
}

// Error names the container.
func (h *held) Error() string { return h.told.Error() }

// Unwrap is the refusal as a v1.Error.
func (h *held) Unwrap() error { return h.told }

// ToldTo is err as it is told to c: it names no container that c may not see.
func (c Caller) ToldTo(err error) error {
	var h *held
	if errors.As(err, &h) && !c.Sees(h.container) {
		return h.hidden
	}
	return err
}

func heldBy(container string, code v1.Code, text string) error {
	refusal := func(who string) *v1.Error { return &v1.Error{Code: code, Message: fmt.Sprintf("%s by %s", text, who)} }
	return &held{container, refusal("container " + container), refusal("another container")}
}

// errPortBound is the refusal of a port that a container holds.
func errPortBound(container string) error {
	return heldBy(container, v1.PortBound, "Port is already bound")
}

// errVolumeInUse is the refusal to delete the volume of a container.
func errVolumeInUse(container string) error {
	return heldBy(container, v1.VolumeInUse, "Volume is in use")
}
