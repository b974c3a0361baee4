package intent

import (
	"reflect"
	"slices"
	"strings"

	v1 "berth/api/v1"
)

// deferrable reports whether a change of container o can wait for a start: a run is requested
// that has not exited, and next does not end it.
func deferrable(o v1.Container, next v1.ContainerSpec) bool {
	return o.Spec.Power == v1.PowerOn && next.Power == v1.PowerOn && !exited(o.Status, o.Spec)
}

// deferred returns the fields of container o that wait for its next start. Until the controller has
// observed the spec, it is not known whether a start has applied them.
func deferred(o v1.Container) []string {
	if o.Status.ObservedGeneration >= o.Meta.Generation && v1.FindCondition(o.Status.Conditions, v1.Pending).Status != v1.True {
		return nil
	}
	return o.Spec.Deferred
}

// deferTo records in next the fields that wait for the next start of container o.
func deferTo(o v1.Container, next v1.ContainerSpec) v1.ContainerSpec {
	list := append(slices.Clone(deferred(o)), recreating(o.Spec, next)...)
	slices.Sort(list)
	next.Deferred = slices.Compact(list)
	return next
}

// recreating returns the names of the fields whose change from one spec to another needs a new
// container.
func recreating(from, to v1.ContainerSpec) (names []string) {
	hash := from.SpecHash()
	for _, f := range v1.Fields(reflect.TypeFor[v1.ContainerSpec]()) {
		if f.Access == "-" {
			continue
		}
		one := from
		reflect.ValueOf(&one).Elem().FieldByIndex(f.Index).Set(reflect.ValueOf(to).FieldByIndex(f.Index))
		if one.SpecHash() != hash {
			names = append(names, f.Name)
		}
	}
	return names
}

// recreation describes what makes container o anew, or will, when next is stored; nil: nothing does.
func recreation(o v1.Container, next v1.ContainerSpec, nextStart NextStart) *v1.Action {
	changed := strings.Join(changedFields(o.Spec, next), ", ")
	waits := o.Spec.SpecHash() != next.SpecHash()
	switch {
	case bool(nextStart) && deferrable(o, next) && waits:
		return &v1.Action{Action: "update", Reason: changed + " changed; " + strings.Join(recreating(o.Spec, next), ", ") + " at the next start"}
	case waits:
		return &v1.Action{Action: "recreate", Reason: changed + " changed"}
	case changed != "":
		if list := deferred(o); len(list) == 0 || bool(nextStart) || !deferrable(o, next) {
			return &v1.Action{Action: "update", Reason: changed + " changed"}
		}
		return &v1.Action{Action: "recreate", Reason: changed + " changed"}
	case !bool(nextStart) && len(deferred(o)) > 0 && deferrable(o, next):
		return &v1.Action{Action: "recreate", Reason: strings.Join(deferred(o), ", ") + " waited for the next start"}
	}
	return nil
}

// NextStart is whether what needs a new container waits for the next start.
type NextStart bool
