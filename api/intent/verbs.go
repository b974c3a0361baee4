package intent

import (
	v1 "berth/api/v1"
	"berth/store"
)

// The refusals of every verb are v1.ErrContainerNotFound and the code
// ContainerDeleting.

// verb changes the spec of a container that is not being deleted.
func verb(s *store.Store, id string, change act) error { return s.Update(change.of(id)) }

// end is verb for what ends a run: it goes on while the disk is full.
func end(s *store.Store, id string, change act) error { return s.MustUpdate(change.of(id)) }

// act is what a verb does to a spec.
type act func(status v1.ContainerStatus, spec *v1.ContainerSpec)

func (a act) of(id string) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		o, err := findActive(tx, id)
		if err != nil {
			return err
		}
		return store.Containers.SetSpec(tx, id, func(spec *v1.ContainerSpec) error {
			a(o.Status, spec)
			return nil
		})
	}
}

// StartContainer asks for a run. While one is wanted that has not ended, it
// changes nothing.
func StartContainer(s *store.Store, id string) error {
	return verb(s, id, func(status v1.ContainerStatus, spec *v1.ContainerSpec) {
		if spec.Power == v1.PowerOn && !ended(status, *spec) {
			return
		}
		spec.Power = v1.PowerOn
		spec.RunGeneration++
	})
}

// RestartContainer asks for a new run after a graceful stop of the one there
// is. While a run is wanted that has not begun, it changes nothing.
func RestartContainer(s *store.Store, id string) error {
	return verb(s, id, func(status v1.ContainerStatus, spec *v1.ContainerSpec) {
		if spec.Power == v1.PowerOn && status.ObservedRun != spec.RunGeneration {
			return
		}
		spec.Power = v1.PowerOn
		spec.RunGeneration++
	})
}

// StopContainer asks for the run to end gracefully.
func StopContainer(s *store.Store, id string) error {
	return end(s, id, func(_ v1.ContainerStatus, spec *v1.ContainerSpec) {
		spec.Power = v1.PowerOff
	})
}

// KillContainer asks for the run to end at once, whatever else is under way.
func KillContainer(s *store.Store, id string) error {
	return end(s, id, func(_ v1.ContainerStatus, spec *v1.ContainerSpec) {
		kill(spec)
	})
}

// kill turns power off and ends the run without a grace period. Before the first
// run it ends what somebody else has started: the run that is ended is the first
// one then, and the next start asks for another.
func kill(spec *v1.ContainerSpec) {
	spec.RunGeneration = max(spec.RunGeneration, 1)
	spec.Power, spec.KillGeneration = v1.PowerOff, spec.RunGeneration
}

// ended says whether the run that spec wants has begun and ended.
func ended(status v1.ContainerStatus, spec v1.ContainerSpec) bool {
	return status.Phase == v1.Exit && status.ObservedRun == spec.RunGeneration
}

// Reinstallation is what a new installation changes. What is nil stays.
type Reinstallation struct{ Image, Script *string }

// CheckReinstallation notes the faults of r.
func CheckReinstallation(f *v1.FieldErrors, r Reinstallation) {
	if r.Image != nil {
		checkImage(f, "image", *r.Image, true)
	}
	if r.Script != nil {
		checkText(f, "install_script", *r.Script)
	}
}

// ReinstallContainer asks for a new installation, and for power off. One that
// is under way is begun anew.
func ReinstallContainer(s *store.Store, id string, r Reinstallation) error {
	var f v1.FieldErrors
	CheckReinstallation(&f, r)
	if err := f.Err(); err != nil {
		return err
	}
	return s.Update(func(tx *store.Tx) error {
		if _, err := findActive(tx, id); err != nil {
			return err
		}
		return store.Containers.SetSpec(tx, id, r.apply)
	})
}

// apply changes a spec. It refuses an image from another registry than the one
// whose credentials the spec names.
func (r Reinstallation) apply(spec *v1.ContainerSpec) error {
	spec.InstallGeneration++
	spec.Power = v1.PowerOff
	if r.Image != nil {
		spec.Image = *r.Image
	}
	if r.Script != nil {
		spec.InstallScript = *r.Script
	}
	var f v1.FieldErrors
	checkRegistry(&f, *spec)
	return f.Err()
}

// RebindNetwork gives a container other ports. A run that has not ended is
// restarted gracefully with them. Its refusals are those of a verb, the faults of
// the ports, v1.ErrStillInstalling, v1.ErrPortNotInPool and the code PortBound.
func RebindNetwork(s *store.Store, id string, ports []v1.Port) error {
	var f v1.FieldErrors
	ports = CheckBindings(&f, ports)
	if err := f.Err(); err != nil {
		return err
	}
	return s.Update(func(tx *store.Tx) error {
		o, err := findActive(tx, id)
		if err != nil {
			return err
		}
		if v1.IsInstalling(o) {
			return v1.ErrStillInstalling
		}
		if err := checkPorts(tx, id, ports); err != nil {
			return err
		}
		spec := o.Spec
		spec.Ports = ports
		return change(tx, o, nextRun(o, spec))
	})
}

// change stores the new spec of a container and moves its claims.
func change(tx *store.Tx, o v1.Container, spec v1.ContainerSpec) error {
	if err := claim(tx, o.Meta.ID, o.Spec.Ports, spec.Ports); err != nil {
		return err
	}
	return store.Containers.SetSpec(tx, o.Meta.ID, func(s *v1.ContainerSpec) error {
		*s = spec
		return nil
	})
}

// nextRun asks for a new run if spec needs another container than the one that
// the run of o was made from. The run is raised also when it has not begun: it
// may be about to, with the old spec.
func nextRun(o v1.Container, spec v1.ContainerSpec) v1.ContainerSpec {
	if spec.Power == v1.PowerOn && o.Spec.Power == v1.PowerOn &&
		spec.SpecHash() != o.Spec.SpecHash() && !ended(o.Status, o.Spec) {
		spec.RunGeneration++
	}
	return spec
}
