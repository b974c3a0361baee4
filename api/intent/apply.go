package intent

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "berth/api/v1"
	"berth/store"
)

// ApplyOptions are the options of an apply.
type ApplyOptions struct {
	IfMatch string // empty: any; otherwise "*" or revisions, quoted or not
	DryRun  bool   // change nothing, and return what would change

	NextStart NextStart
}

// Applied is the result of an apply or of its dry run.
type Applied struct {
	Created bool
	Actions []v1.Action
}

// Changed reports whether the apply changes anything.
func (a Applied) Changed() bool { return len(a.Actions) > 0 }

// ApplyContainer creates container id, or changes its spec to the requested one. A
// repeated request changes nothing. Its refusals are those of CreateContainer except
// ContainerExists, and the codes Precondition and ContainerDeleting. The generations of spec
// are ignored. If it has no install script or no power, the stored one is kept.
func ApplyContainer(s store.Writer, p Policy, id string, spec v1.ContainerSpec, o ApplyOptions) (Applied, error) {
	var f v1.FieldErrors
	keepScript := spec.InstallScript == nil
	CheckContainer(&f, p, id, &spec)
	if keepScript {
		spec.InstallScript = nil
	}
	if err := f.Err(); err != nil {
		return Applied{}, err
	}
	var done Applied
	apply := func(tx *store.Tx) error {
		next, old, err := admit(tx, id, spec, o)
		if err != nil {
			return err
		}
		done = Applied{Created: old == nil, Actions: actions(old, next, o.NextStart)}
		switch {
		case o.DryRun || !done.Changed():
			return nil
		case old == nil:
			return create(tx, id, next)
		}
		return change(tx, *old, next)
	}
	if o.DryRun {
		err := apply(s.Read())
		return done, err
	}
	err := s.Update(apply)
	return done, err
}

// admit checks a request against the stored objects. It returns the new spec and the
// existing container, nil if there is none.
func admit(tx *store.Tx, id string, spec v1.ContainerSpec, o ApplyOptions) (v1.ContainerSpec, *v1.Container, error) {
	volume, err := FindVolume(tx, spec.VolumeID)
	if err != nil {
		return spec, nil, err
	}
	spec.VolumeID = volume.Meta.ID
	old, err := findActive(tx, id)
	if errors.Is(err, errDeleting) {
		return spec, nil, stillDeleting(v1.ContainerDeleting, id)
	}
	exists := err == nil
	if !exists && !errors.Is(err, v1.ErrContainerNotFound) {
		return spec, nil, err
	}
	if !ifMatches(o.IfMatch, exists, old.Meta.Revision) {
		return spec, nil, v1.Errorf(v1.Precondition, "If-Match does not name the container's resource_version")
	}
	if err := checkStays(tx, spec.VolumeID); err != nil {
		return spec, nil, err
	}
	if err := checkPorts(tx, id, spec.Ports); err != nil {
		return spec, nil, err
	}
	if !exists {
		return initialSpec(spec), nil, nil
	}
	return merge(old, spec, o.NextStart), &old, nil
}

// ifMatches evaluates If-Match against the revision of the stored container.
func ifMatches(header string, exists bool, revision uint64) bool {
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

// merge returns the spec of container old after a request for spec.
func merge(old v1.Container, spec v1.ContainerSpec, nextStart NextStart) v1.ContainerSpec {
	spec.InstallGeneration, spec.RunGeneration, spec.KillGeneration = old.Spec.InstallGeneration, old.Spec.RunGeneration,
		old.Spec.KillGeneration
	spec.Arrived = old.Spec.Arrived
	if spec.InstallScript == nil {
		spec.InstallScript = old.Spec.InstallScript
	}
	spec.Power = cmp.Or(spec.Power, old.Spec.Power)
	if spec.Power == v1.PowerOn && old.Spec.Power != v1.PowerOn {
		spec.RunGeneration++
	}
	if bool(nextStart) && deferrable(old, spec) {
		return deferTo(old, spec)
	}
	return nextRun(old, spec)
}

// actions returns the actions that lead from container old to the spec next. old is
// nil if there is no container.
func actions(old *v1.Container, next v1.ContainerSpec, nextStart NextStart) []v1.Action {
	if old == nil {
		list := []v1.Action{{Action: "create", Reason: "there is no such container"}}
		if next.Power == v1.PowerOn {
			list = append(list, v1.Action{Action: "start", Reason: "power is running"})
		}
		return list
	}
	var list []v1.Action
	if a := recreation(*old, next, nextStart); a != nil {
		list = append(list, *a)
	}
	switch {
	case old.Spec.Power == next.Power:
	case next.Power == v1.PowerOn:
		list = append(list, v1.Action{Action: "start", Reason: "power is running"})
	default:
		list = append(list, v1.Action{Action: "stop", Reason: "power is stopped"})
	}
	return list
}

// changedFields returns the names of the fields in which two specs differ, in order.
// The power, the generations and who requested them are not among them.
func changedFields(a, b v1.ContainerSpec) []string {
	x, y := fields(v1.WithDefaults(a)), fields(v1.WithDefaults(b))
	all := maps.Clone(x)
	maps.Copy(all, y)
	for _, name := range []string{"install", "run", "kill_run", "power", "requested_by", "deferred"} {
		delete(all, name)
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if x[name] != y[name] {
			names = append(names, name)
		}
	}
	return names
}

// fields returns the JSON texts of a spec's fields by name.
func fields(s v1.ContainerSpec) map[string]string {
	text, _ := json.Marshal(s) // plain data: it cannot fail
	raw := map[string]json.RawMessage{}
	_ = json.Unmarshal(text, &raw)
	m := map[string]string{}
	for name, value := range raw {
		m[name] = string(value)
	}
	return m
}
