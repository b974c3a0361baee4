package server

import (
	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// node holds the handler that describes the host.
type node struct {
	settings   auth.Settings
	observed   func() v1.Node
	containers *store.Projection[v1.ContainerSpec, v1.ContainerStatus, part]
}

// part is the part of one container in the sums of the node.
type part struct {
	phase  v1.Phase
	limits v1.Limits // of a container that is not being deleted
}

func newNode(d Deps) node {
	return node{d.Settings, d.Node, store.NewProjection(d.Store, store.Containers, func(o v1.Container) part {
		if o.Meta.Deleted {
			return part{phase: phase(o)}
		}
		return part{phase(o), o.Spec.Limits}
	})}
}

// get answers with what the daemon has observed of the host, and with the sums of the
// stored containers. It asks neither the host nor the engine.
func (s node) get(c *fiber.Ctx) error {
	if s.observed == nil {
		return edge.ErrUnavailable
	}
	n := s.observed()
	n.Features, n.Containers = s.settings.Current().Features(), map[v1.Phase]int{}
	for _, p := range v1.Phases() {
		n.Containers[p] = 0
	}
	err := s.containers.Read(func(items []store.Projected[part], _ uint64) {
		for _, one := range items {
			n.Containers[one.Value.phase]++
			n.Allocated = n.Allocated.Add(one.Value.limits)
		}
	})
	if err != nil {
		return err
	}
	return edge.OK(c, n)
}
