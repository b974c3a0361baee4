package intent

import (
	v1 "berth/api/v1"
	"berth/store"
)

// verb changes the spec of a container. Its refusals are v1.ErrContainerNotFound and
// the code ContainerDeleting.
func verb(s store.Writer, id string, change specChange) error { return s.Update(change.of(id)) }

// mustVerb is verb for changes that end a run. They are allowed on a full disk.
func mustVerb(s store.Writer, id string, change specChange) error { return s.MustUpdate(change.of(id)) }

// specChange is the change of a spec by a verb.
type specChange func(status v1.ContainerStatus, spec *v1.ContainerSpec)

func (a specChange) of(id string) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		o, err := findActive(tx, id)
		if err != nil {
			return err
		}
		return setSpec(tx, id, func(spec *v1.ContainerSpec) error {
			a(o.Status, spec)
			return nil
		})
	}
}

// StartContainer requests a run. It changes nothing while a requested run has not
// exited.
func StartContainer(s store.Writer, id string) error {
	return verb(s, id, func(status v1.ContainerStatus, spec *v1.ContainerSpec) {
		if spec.Power == v1.PowerOn && !exited(status, *spec) {
			return
		}
		spec.Power = v1.PowerOn
		spec.RunGeneration++
	})
}

// RestartContainer requests a new run after a graceful stop of the current one. It
// changes nothing while a requested run has not begun.
func RestartContainer(s store.Writer, id string) error {
	return verb(s, id, func(status v1.ContainerStatus, spec *v1.ContainerSpec) {
		if spec.Power == v1.PowerOn && status.ObservedRun != spec.RunGeneration {
			return
		}
		spec.Power = v1.PowerOn
		spec.RunGeneration++
	})
}

// StopContainer requests a graceful stop of the run.
func StopContainer(s store.Writer, id string) error {
	return mustVerb(s, id, func(_ v1.ContainerStatus, spec *v1.ContainerSpec) {
		spec.Power = v1.PowerOff
	})
}

// KillContainer requests the end of the run without a grace period. It overrides
// every other request.
func KillContainer(s store.Writer, id string) error {
	return mustVerb(s, id, func(_ v1.ContainerStatus, spec *v1.ContainerSpec) {
		kill(spec)
	})
}

// kill turns power off and ends the run without a grace period. Before the first run
// it ends a run that was started from outside: that counts as the first one, and the
// next start requests another.
func kill(spec *v1.ContainerSpec) {
	spec.RunGeneration = max(spec.RunGeneration, 1)
	spec.Power, spec.KillGeneration = v1.PowerOff, spec.RunGeneration
}

// exited reports whether the requested run has begun and exited.
func exited(status v1.ContainerStatus, spec v1.ContainerSpec) bool {
	return status.Phase == v1.Exit && status.ObservedRun == spec.RunGeneration
}

// Reinstallation is the changes of a new installation. A nil field stays unchanged.
type Reinstallation struct{ Image, Script *string }

// CheckReinstallation adds the errors of r to f.
func CheckReinstallation(f *v1.FieldErrors, r Reinstallation) {
	if r.Image != nil {
		checkImage(f, "image", *r.Image, true)
	}
	if r.Script != nil {
		checkText(f, "install_script", *r.Script)
	}
}

// ReinstallContainer requests a new installation and turns power off. A current
// installation is aborted.
func ReinstallContainer(s store.Writer, id string, r Reinstallation) error {
	var f v1.FieldErrors
	CheckReinstallation(&f, r)
	if err := f.Err(); err != nil {
		return err
	}
	return s.Update(func(tx *store.Tx) error {
		if _, err := findActive(tx, id); err != nil {
			return err
		}
		return setSpec(tx, id, r.apply)
	})
}

// apply changes a spec. It refuses an image that is not from the registry whose
// credentials the spec names.
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

// RebindNetwork changes the ports of a container. A run that has not exited is
// restarted gracefully. Its refusals are those of a verb, v1.FieldErrors,
// v1.ErrStillInstalling, v1.ErrPortNotInPool and the code PortBound.
func RebindNetwork(s store.Writer, id string, ports []v1.Port) error {
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
	return setSpec(tx, o.Meta.ID, func(s *v1.ContainerSpec) error {
		*s = spec
		return nil
	})
}

// nextRun raises the run generation if spec needs another container than the run of
// o. It does so even if the run has not begun: it may be about to, with the old spec.
func nextRun(o v1.Container, spec v1.ContainerSpec) v1.ContainerSpec {
	if spec.Power == v1.PowerOn && o.Spec.Power == v1.PowerOn &&
		spec.SpecHash() != o.Spec.SpecHash() && !exited(o.Status, o.Spec) {
		spec.RunGeneration++
	}
	return spec
}
