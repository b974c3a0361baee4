package intent

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	v1 "berth/api/v1"
)

// actions returns the actions that lead from container old to the spec next. old is
// nil if there is no container.
func actions(old *v1.Container, next v1.ContainerSpec) []v1.Action {
	if old == nil {
		list := []v1.Action{{Action: "create", Reason: "there is no such container"}}
		if next.Power == v1.PowerOn {
			list = append(list, v1.Action{Action: "start", Reason: "power is running"})
		}
		return list
	}
	var list []v1.Action
	if changed := changedFields(old.Spec, next); len(changed) > 0 {
		kind := "update"
		if old.Spec.SpecHash() != next.SpecHash() {
			kind = "recreate"
		}
		list = append(list, v1.Action{Action: kind, Reason: strings.Join(changed, ", ") + " changed"})
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
	for _, name := range []string{"install", "run", "kill_run", "power", "requested_by"} {
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
