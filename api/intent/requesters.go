package intent

import (
	v1 "berth/api/v1"
	"berth/store"
)

// setSpec changes the spec of a container, and records in it who requested the change.
func setSpec(tx *store.Tx, id string, change func(*v1.ContainerSpec) error) error {
	return store.Containers.SetSpec(tx, id, func(spec *v1.ContainerSpec) error {
		old := *spec
		if err := change(spec); err != nil {
			return err
		}
		spec.RequestedBy = requesters(old, *spec, tx.Actor())
		return nil
	})
}

// requesters returns who requested what a spec asks for, after actor has changed it
// from old to spec.
func requesters(old, spec v1.ContainerSpec, actor v1.Actor) v1.Requesters {
	r := old.RequestedBy
	r.Delete = spec.RequestedBy.Delete
	if spec.RunGeneration != old.RunGeneration {
		r.Run = actor
	}
	if spec.Power == v1.PowerOff && old.Power == v1.PowerOn || spec.KillGeneration != old.KillGeneration {
		r.Stop = actor
	}
	if spec.InstallGeneration != old.InstallGeneration {
		r.Install = actor
	}
	return r
}
