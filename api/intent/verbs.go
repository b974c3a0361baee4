package intent

import (
	v1 "berth/api/v1"
	"berth/store"
)

// Verb is a request of a client that starts or ends runs.
type Verb string

// The verbs.
const (
	Start   Verb = "start"   // request a run, unless one that has not exited is requested
	Stop    Verb = "stop"    // stop the run gracefully
	Kill    Verb = "kill"    // end the run without a grace period; it overrides every other request
	Restart Verb = "restart" // request a run after a graceful stop of the current one, unless one that has not begun is requested
)

// Power changes the requested power of a container. Its refusals are
// v1.ErrContainerNotFound, v1.ErrTransferring, the code ContainerDeleting, and an error for an unknown verb.
// Stop and Kill are allowed on a full disk.
func Power(s store.Writer, id string, verb Verb) error {
	update := s.Update
	switch verb {
	case Start, Restart:
	case Stop, Kill:
		update = s.MustUpdate
	default:
		return v1.Errorf(v1.InvalidRequest, "data: must be start, stop, kill or restart")
	}
	return update(func(tx *store.Tx) error {
		o, err := findActive(tx, id)
		if err != nil {
			return err
		}
		return setSpec(tx, id, func(spec *v1.ContainerSpec) error {
			verb.apply(o.Status, spec)
			return nil
		})
	})
}

// apply changes the spec of a container with this status.
func (v Verb) apply(status v1.ContainerStatus, spec *v1.ContainerSpec) {
	pending := status.ObservedRun != spec.RunGeneration // the requested run has not begun
	switch {
	case v == Stop:
		spec.Power = v1.PowerOff
	case v == Kill:
		kill(spec)
	case v == Start && spec.Power == v1.PowerOn && !exited(status, *spec):
	case v == Restart && spec.Power == v1.PowerOn && pending:
	default:
		spec.Power = v1.PowerOn
		spec.RunGeneration++
	}
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

// CheckReinstallation adds the errors of r to f.
func CheckReinstallation(f *v1.FieldErrors, r v1.ReinstallRequest) {
	if r.Image != nil {
		checkImage(f, "image", *r.Image, true)
	}
	if r.InstallScript != nil {
		checkText(f, "install_script", *r.InstallScript)
	}
}

// ReinstallContainer requests a new installation and turns power off. A current
// installation is aborted.
func ReinstallContainer(s store.Writer, id string, r v1.ReinstallRequest) error {
	var f v1.FieldErrors
	CheckReinstallation(&f, r)
	if err := f.Err(); err != nil {
		return err
	}
	return s.Update(func(tx *store.Tx) error {
		if _, err := findActive(tx, id); err != nil {
			return err
		}
		return setSpec(tx, id, func(spec *v1.ContainerSpec) error { return reinstall(spec, r) })
	})
}

// reinstall changes a spec. It refuses an image that is not from the registry whose
// credentials the spec names.
func reinstall(spec *v1.ContainerSpec, r v1.ReinstallRequest) error {
	spec.InstallGeneration++
	spec.Power = v1.PowerOff
	if r.Image != nil {
		spec.Image = *r.Image
	}
	if r.InstallScript != nil {
		spec.InstallScript = r.InstallScript
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
// o, or fields of it wait for a start. It does so even if the run has not begun: it may be about
// to, with the old spec.
func nextRun(o v1.Container, spec v1.ContainerSpec) v1.ContainerSpec {
	if deferrable(o, spec) && (spec.SpecHash() != o.Spec.SpecHash() || len(deferred(o)) > 0) {
		spec.RunGeneration++
	}
	spec.Deferred = nil
	return spec
}

// setSpec changes the spec of a container, and records in it who requested an action: a change that requests
// none keeps the last one.
func setSpec(tx *store.Tx, id string, change func(*v1.ContainerSpec) error) error {
	return store.Containers.SetSpec(tx, id, func(spec *v1.ContainerSpec) error {
		old := *spec
		if err := change(spec); err != nil {
			return err
		}
		if spec.RequestedBy = old.RequestedBy; requestsAction(old, *spec) {
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
