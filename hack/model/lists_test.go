package model_test

import (
	"fmt"
	"maps"
	"slices"

	"berth/hack/test/berthtest"
)

// checkLists compares the lists of all objects with the model: nothing is missing, nothing was made up, and each port
// of the pool is bound by the container that has it, and by no other.
func (w *world) checkLists() {
	c := w.clients[0]
	games, volumes, tokens, owners := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[int]string{}
	for _, c := range w.clients {
		for _, g := range c.games {
			games[g.id] = g.possible[0].exists
			volumes[g.volume] = true
		}
		volumes[c.data.id] = true
		for _, k := range c.tokens {
			tokens[k.id] = true
		}
	}
	delete(volumes, "")
	maps.DeleteFunc(games, func(_ string, exists bool) bool { return !exists })
	var list struct {
		Containers []struct {
			ID    string `json:"internal_id"`
			Ports []struct{ Port int }
		}
	}
	c.get("/containers", &list)
	seen := map[string]bool{}
	for _, o := range list.Containers {
		seen[o.ID] = true
		for _, p := range o.Ports {
			if other, bound := owners[p.Port]; bound {
				w.violated(nil, "port %d is bound by %s and %s", p.Port, other, o.ID)
			}
			owners[p.Port] = o.ID
		}
	}
	w.compare("containers", games, seen)
	w.checkPool(owners)
	w.compare("volumes", volumes, set(c.volumes(), func(v volume) string { return v.ID }))
	w.compare("tokens", tokens, set(c.listTokens(), func(k listed) string { return k.ID }))
}

func set[T any](list []T, name func(T) string) map[string]bool {
	all := map[string]bool{}
	for _, o := range list {
		all[name(o)] = true
	}
	return all
}

// compare requires that a list has exactly what it must have.
func (w *world) compare(what string, must, has map[string]bool) {
	if !maps.Equal(must, has) {
		w.violated(nil, "%s: %v; must be %v", what, slices.Sorted(maps.Keys(has)), slices.Sorted(maps.Keys(must)))
	}
}

// checkPool compares the pool with the bindings of the containers.
func (w *world) checkPool(owners map[int]string) {
	pool := func() map[int]string {
		bound := map[int]string{}
		for _, p := range w.b.Pool(w.t) {
			if p.InUse || p.Container != "" {
				bound[p.Port] = p.Container
			}
		}
		return bound
	}
	var bound map[int]string
	if !berthtest.Within(wait, func() bool { bound = pool(); return maps.Equal(bound, owners) }) {
		w.violated(nil, "the pool has %s; the containers have %s", fmt.Sprint(bound), fmt.Sprint(owners))
	}
}
