package intent

import (
	v1 "berth/api/v1"
	"berth/store"
)

// setSpec changes the spec of a container, and records in it who requested an action.
func setSpec(tx *store.Tx, id string, change func(*v1.ContainerSpec) error) error {
	return store.Containers.SetSpec(tx, id, func(spec *v1.ContainerSpec) error {
		old := *spec
		if err := change(spec); err != nil {
			return err
		}
		if requestsAction(old, *spec) {
			spec.RequestedBy = tx.Actor()
		}
		return nil
	})
}

// requestsAction reports whether a change of a spec from old is a request to start, stop,
// kill or install the container.
func requestsAction(old, spec v1.ContainerSpec) bool {
	return spec.RunGeneration != old.RunGeneration || spec.KillGeneration != old.KillGeneration ||
		spec.InstallGeneration != old.InstallGeneration || spec.Power == v1.PowerOff && old.Power == v1.PowerOn
}
