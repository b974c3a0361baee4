package intent

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	v1 "berth/api/v1"
)

// Action is one thing that follows from an apply.
type Action struct {
	Action string // create, update, recreate, start or stop
	Reason string // one sentence
}

// generations are no fields that a client sets.
var generations = map[string]bool{"install": true, "run": true, "kill_run": true, "power": true}

// actions tells what leads from container old, nil for none, to the spec next.
func actions(old *v1.Container, next v1.ContainerSpec) []Action {
	if old == nil {
		list := []Action{{"create", "there is no such container"}}
		if next.Power == v1.PowerOn {
			list = append(list, Action{"start", "power is running"})
		}
		return list
	}
	var list []Action
	if changed := differing(old.Spec, next); len(changed) > 0 {
		kind := "update"
		if old.Spec.SpecHash() != next.SpecHash() {
			kind = "recreate"
		}
		list = append(list, Action{kind, strings.Join(changed, ", ") + " changed"})
	}
	switch {
	case old.Spec.Power == next.Power:
	case next.Power == v1.PowerOn:
		list = append(list, Action{"start", "power is running"})
	default:
		list = append(list, Action{"stop", "power is stopped"})
	}
	return list
}

// differing names the fields of two specs that are not the same, in order.
func differing(a, b v1.ContainerSpec) []string {
	x, y := fields(a), fields(b)
	all := maps.Clone(x)
	maps.Copy(all, y)
	var names []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !generations[name] && x[name] != y[name] {
			names = append(names, name)
		}
	}
	return names
}

// fields are the JSON texts of a spec's fields.
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
