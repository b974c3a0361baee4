package server

import (
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// node holds the handler that describes the host.
type node struct {
	observed func() v1.Node
	store    *store.Store
}

// get answers with what the daemon has observed of the host, and with the sums of the
// stored containers. It asks neither the host nor the engine.
func (s node) get(c *call) (v1.Node, error) {
	if s.observed == nil {
		return v1.Node{}, edge.ErrUnavailable
	}
	n := s.observed()
	n.Containers = map[v1.Phase]int{}
	for _, p := range v1.Phases() {
		n.Containers[p] = 0
	}
	err := s.store.View(func(tx *store.Tx) error {
		for o := range store.Containers.After(tx, "") {
			n.Containers[v1.ShownPhase(o)]++
			if !o.Meta.Deleted {
				n.Allocated = n.Allocated.Add(o.Spec.Limits)
			}
		}
		return nil
	})
	if err != nil {
		return v1.Node{}, err
	}
	return n, nil
}
