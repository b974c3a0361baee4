package intent

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	v1 "berth/api/v1"
	"berth/store"
)

// ApplyRequest is a container as a client declares it.
type ApplyRequest struct {
	Spec       v1.ContainerSpec // its ordinals are not read; an empty Power is the stored one
	KeepScript bool             // the stored install_script stays
}

// ApplyOptions are the terms of an apply.
type ApplyOptions struct {
	IfMatch string // empty: any; else "*" or a revision, quoted or not
	DryRun  bool   // only tell what would change
}

// Applied is what an apply did, or would do.
type Applied struct {
	Created bool
	Actions []Action
}

// Changed says whether there was anything to do.
func (a Applied) Changed() bool { return len(a.Actions) > 0 }

// ApplyContainer makes container id what wish says. It is created if there is
// none. The same wish twice changes nothing the second time. Its refusals are
// those of CreateContainer but for v1.ErrContainerExists, and the codes
// Precondition and ContainerDeleting.
func ApplyContainer(s *store.Store, p Policy, id string, wish ApplyRequest, o ApplyOptions) (Applied, error) {
	var f v1.FieldErrors
	CheckContainer(&f, p, id, &wish.Spec)
	if err := f.Err(); err != nil {
		return Applied{}, err
	}
	var done Applied
	run := s.Update
	if o.DryRun {
		run = s.View
	}
	err := run(func(tx *store.Tx) error {
		next, old, err := admit(tx, id, wish, o)
		if err != nil {
			return err
		}
		done = Applied{Created: old == nil, Actions: actions(old, next)}
		switch {
		case o.DryRun || !done.Changed():
			return nil
		case old == nil:
			return create(tx, id, next)
		}
		return change(tx, *old, next)
	})
	return done, err
}

// admit checks wish against what is stored, and returns the spec that follows
// from it, and the container that there is.
func admit(tx *store.Tx, id string, wish ApplyRequest, o ApplyOptions) (v1.ContainerSpec, *v1.Container, error) {
	spec := wish.Spec
	volume, err := FindVolume(tx, spec.VolumeID)
	if err != nil {
		return spec, nil, err
	}
	spec.VolumeID = volume.Meta.ID
	old, err := findActive(tx, id)
	exists := err == nil
	if !exists && !errors.Is(err, v1.ErrContainerNotFound) {
		return spec, nil, err
	}
	if !matches(o.IfMatch, exists, old.Meta.Revision) {
		return spec, nil, v1.Errorf(v1.Precondition, "If-Match does not name the container's resource_version")
	}
	if err := checkPorts(tx, id, spec.Ports); err != nil {
		return spec, nil, err
	}
	if !exists {
		return initialSpec(spec), nil, nil
	}
	return merge(old, wish, spec), &old, nil
}

// matches evaluates If-Match against the revision of what is stored.
func matches(header string, exists bool, revision uint64) bool {
	if header == "" {
		return true
	}
	for tag := range strings.SplitSeq(header, ",") {
		tag = strings.Trim(strings.TrimSpace(tag), `"`)
		if exists && (tag == "*" || tag == strconv.FormatUint(revision, 10)) {
			return true
		}
	}
	return false
}

// merge is the spec of container old after wish.
func merge(old v1.Container, wish ApplyRequest, spec v1.ContainerSpec) v1.ContainerSpec {
	spec.InstallGeneration, spec.RunGeneration, spec.KillGeneration = old.Spec.InstallGeneration, old.Spec.RunGeneration, old.Spec.KillGeneration
	if wish.KeepScript {
		spec.InstallScript = old.Spec.InstallScript
	}
	spec.Power = cmp.Or(spec.Power, old.Spec.Power)
	if spec.Power == v1.PowerOn && old.Spec.Power != v1.PowerOn {
		spec.RunGeneration++
	}
	return nextRun(old, spec)
}
