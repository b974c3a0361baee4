package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"berth/runtime"
)

// errNotOurs means that a container without this store's labels has the name.
// All methods but Create treat it as ErrNotFound.
var errNotOurs = fmt.Errorf("%w: another has its name", runtime.ErrNotFound)

// Inspect returns the state of n. A container of the same name without this
// store's labels is not n.
func (e *Engine) Inspect(ctx context.Context, n runtime.Name) (runtime.State, error) {
	c, err := e.core.find(ctx, n)
	if err != nil {
		return runtime.State{}, err
	}
	s := state(c)
	s.Detached = e.core.detached(c)
	s.OOMAt = e.core.ooms.since(s.ContainerID, s.StartedAt)
	s.OOMKilled = s.OOMKilled || !s.Running && !s.OOMAt.IsZero()
	return s, nil
}

// detached reports whether a container was disconnected from the network.
func (e *core) detached(c container.InspectResponse) bool {
	if c.HostConfig == nil || c.NetworkSettings == nil || string(c.HostConfig.NetworkMode) != e.cfg.Network {
		return false
	}
	_, connected := c.NetworkSettings.Networks[e.cfg.Network]
	return !connected
}

// find inspects n by its cached id, then by its name, then by its labels: a
// container that somebody renamed must be found, so that Create makes no second
// one. The search by labels lists all containers, at most once a second.
func (e *core) find(ctx context.Context, n runtime.Name) (c container.InspectResponse, err error) {
	if id, known := e.ids.get(n); known {
		if c, err = e.inspect(ctx, n, id); !errors.Is(err, runtime.ErrNotFound) {
			return c, err
		}
		e.ids.drop(n, id)
	}
	if c, err = e.inspect(ctx, n, engineName(e.cfg.StoreID, n)); !errors.Is(err, runtime.ErrNotFound) {
		return c, err
	}
	if !e.ids.absent(n) {
		if _, err := e.list(ctx); err != nil {
			return c, err
		}
	}
	id, known := e.ids.get(n)
	if !known {
		return c, fmt.Errorf("inspect %s: %w", describe(n), runtime.ErrNotFound)
	}
	return e.inspect(ctx, n, id)
}

// inspect inspects a container by name or id, and caches its id if it is n.
func (e *core) inspect(ctx context.Context, n runtime.Name, ref string) (c container.InspectResponse, err error) {
	changes := e.places.begin()
	err = e.calls.do(ctx, opInspect, describe(n), func(ctx context.Context) error {
		c, err = e.conn.client().ContainerInspect(ctx, ref)
		return err
	})
	switch {
	case err != nil:
		return c, err
	case c.ContainerJSONBase == nil || c.ID == "" || c.State == nil || c.Config == nil:
		return c, fmt.Errorf("inspect %s: %w: its answer is incomplete", describe(n), runtime.ErrUnavailable)
	}
	if whose, ours := nameOf(e.cfg.StoreID, c.Config.Labels); !ours || whose != n {
		return c, fmt.Errorf("inspect %s: %w", describe(n), errNotOurs)
	}
	e.ids.put(n, c.ID)
	e.places.put(n, placeOf(c), changes)
	return c, nil
}

// List returns the containers of this store, of both roles.
func (e *Engine) List(ctx context.Context) ([]runtime.Found, error) { return e.core.list(ctx) }

// list lists the containers of this store and caches their ids.
func (e *core) list(ctx context.Context) ([]runtime.Found, error) {
	args := filters.NewArgs(filters.Arg("label", labelStore+"="+e.cfg.StoreID))
	asked := time.Now()
	var all []container.Summary
	err := e.calls.do(ctx, opList, "containers", func(ctx context.Context) (err error) {
		all, err = e.conn.client().ContainerList(ctx, container.ListOptions{All: true, Filters: args})
		return err
	})
	if err != nil {
		return nil, err
	}
	found := make([]runtime.Found, 0, len(all))
	for _, c := range all {
		n, ours := nameOf(e.cfg.StoreID, c.Labels)
		if !ours {
			continue
		}
		one := runtime.Found{Name: n, ContainerID: c.ID}
		for _, m := range c.Mounts {
			one.Mounts = append(one.Mounts, m.Source)
		}
		found = append(found, one)
	}
	e.ids.setList(found, asked)
	return found, nil
}
