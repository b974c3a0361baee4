package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	dockernetwork "github.com/docker/docker/api/types/network"

	"berth/runtime"
	"berth/runtime/keeper"
)

// errNotOurs means that a container without this store's labels has the name.
// All methods but Create treat it as ErrNotFound.
var errNotOurs = fmt.Errorf("%w: another has its name", runtime.ErrNotFound)

// Inspect returns the state of n. A container of the same name without this
// store's labels is not n.
func (e *Engine) Inspect(ctx context.Context, n runtime.Name) (runtime.State, error) {
	c, err := e.find(ctx, n)
	if err != nil {
		return runtime.State{}, err
	}
	s := state(c)
	s.Detached = e.detached(c)
	s.OOMAt = e.ooms.since(s.ContainerID, s.StartedAt)
	s.OOMKilled = s.OOMKilled || !s.Running && !s.OOMAt.IsZero()
	return s, nil
}

// detached reports whether a container was disconnected from the network.
func (e *Engine) detached(c container.InspectResponse) bool {
	return c.HostConfig != nil && c.NetworkSettings != nil && e.lacksNetwork(string(c.HostConfig.NetworkMode), c.NetworkSettings.Networks)
}

// lacksNetwork reports whether a container of a network mode is not connected to the network of the containers.
func (e *Engine) lacksNetwork(mode string, of map[string]*dockernetwork.EndpointSettings) bool {
	_, connected := of[e.cfg.Network]
	return mode == e.cfg.Network && !connected
}

// find inspects n by its cached id, then by its name. Before the first list it lists all
// containers, as Watch does at each connect: a container that somebody renamed must be
// found by its labels, so that Create makes no second one.
func (e *Engine) find(ctx context.Context, n runtime.Name) (c container.InspectResponse, err error) {
	if id, known := e.ids.get(n); known {
		if c, err = e.inspect(ctx, n, id); !errors.Is(err, runtime.ErrNotFound) {
			return c, err
		}
		e.ids.drop(n, id)
	}
	if c, err = e.inspect(ctx, n, engineName(e.cfg.StoreID, n)); !errors.Is(err, runtime.ErrNotFound) {
		return c, err
	}
	if e.ids.listed.Load() {
		return c, err
	}
	if _, listErr := e.List(ctx); listErr != nil {
		return c, listErr
	}
	if id, known := e.ids.get(n); known {
		return e.inspect(ctx, n, id)
	}
	return c, err
}

// inspect inspects a container by name or id, and caches its id if it is n.
func (e *Engine) inspect(ctx context.Context, n runtime.Name, ref string) (c container.InspectResponse, err error) {
	err = e.calls.do(ctx, opInspect, n.String(), func(ctx context.Context) error {
		c, err = e.conn.client().ContainerInspect(ctx, ref)
		return err
	})
	switch {
	case err != nil:
		return c, err
	case c.ContainerJSONBase == nil || c.ID == "" || c.State == nil || c.Config == nil:
		return c, fmt.Errorf("inspect %s: %w: its answer is incomplete", n, runtime.ErrUnavailable)
	}
	if whose, ours := nameOf(e.cfg.StoreID, c.Config.Labels); !ours || whose != n {
		return c, fmt.Errorf("inspect %s: %w", n, errNotOurs)
	}
	e.ids.of.Store(n, c.ID)
	return c, nil
}

// List returns the containers of this store, of both roles. The first list removes the probes of a
// daemon that was killed.
func (e *Engine) List(ctx context.Context) ([]runtime.Found, error) {
	args := filters.NewArgs(filters.Arg("label", labelStore+"="+e.cfg.StoreID))
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
		if c.Labels[labelRole] == string(probeRole) && !e.ids.listed.Load() {
			_ = e.removeProbe(ctx, c.ID) // the next start of berth tries again
		}
		n, ours := nameOf(e.cfg.StoreID, c.Labels)
		if !ours {
			continue
		}
		e.ids.of.Store(n, c.ID)
		one := runtime.Found{Name: n, State: e.listed(c)}
		for _, m := range c.Mounts {
			if m.Destination == keeper.Dir {
				continue
			}
			one.Mounts = append(one.Mounts, m.Source)
		}
		found = append(found, one)
	}
	e.ids.listed.Store(true)
	return found, nil
}

// listed converts an entry of a list. It shows the age of a run in seconds during its first minute, and then in
// larger units: the run of an older age is the one that an event has reported, or the list before.
func (e *Engine) listed(c container.Summary) runtime.State {
	s := runtime.State{ContainerID: c.ID, SpecHash: c.Labels[labelSpec], Paused: c.State == container.StatePaused,
		Running: slices.Contains([]string{container.StateRunning, container.StatePaused, container.StateRestarting}, c.State)}
	s.Detached = c.NetworkSettings != nil && e.lacksNetwork(c.HostConfig.NetworkMode, c.NetworkSettings.Networks)
	if s.Running && strings.Contains(c.Status, "second") {
		s.StartedAt = time.Now()
	}
	return s
}

// ids caches the engine's ids of this store's containers, by runtime.Name. Labels never change, so
// a cached id belongs to this store as long as the container exists.
type ids struct {
	of     sync.Map
	listed atomic.Bool // all containers were listed: one that others renamed is in the cache
}

func (i *ids) get(n runtime.Name) (id string, ok bool) {
	found, ok := i.of.Load(n)
	id, _ = found.(string)
	return id, ok
}

// drop removes id from the cache, unless n has another id by now.
func (i *ids) drop(n runtime.Name, id string) { i.of.CompareAndDelete(n, id) }

// state converts the answer to an inspect.
func state(c container.InspectResponse) runtime.State {
	s := runtime.State{ContainerID: c.ID, ImageID: c.Image}
	if c.Config != nil {
		s.SpecHash, s.TTY, s.StopSignal = c.Config.Labels[labelSpec], c.Config.Tty, c.Config.StopSignal
		if c.Config.StopTimeout != nil {
			s.StopTimeout = time.Duration(*c.Config.StopTimeout) * time.Second
		}
		s.Incarnation = c.Config.Labels[labelLife]
		s.Revision, _ = strconv.ParseUint(c.Config.Labels[labelRevision], 10, 64) // none is 0: older than any store
	}
	if c.HostConfig != nil {
		s.Live = live(c.HostConfig.Resources)
	}
	if c.State == nil {
		return s
	}
	s.Running, s.Paused = c.State.Running, c.State.Paused
	s.StartedAt, s.FinishedAt = parseTime(c.State.StartedAt), parseTime(c.State.FinishedAt)
	s.ExitCode, s.OOMKilled = c.State.ExitCode, c.State.OOMKilled
	return s
}

func live(r container.Resources) runtime.Live {
	l := runtime.Live{Memory: r.Memory, CPU: float64(r.NanoCPUs) / 1e9, Cpuset: r.CpusetCpus}
	if r.Memory > 0 && r.MemorySwap > r.Memory {
		l.Swap = r.MemorySwap - r.Memory
	}
	if r.Memory > 0 && r.MemorySwap < 0 {
		l.Swap = -1
	}
	if r.OomKillDisable != nil {
		l.NoOOMKill = *r.OomKillDisable
	}
	if r.PidsLimit != nil && *r.PidsLimit > 0 {
		l.Pids = max(1, *r.PidsLimit-keeper.Pids)
	}
	return l
}

// parseTime parses a time. Docker's year 1 means never, and becomes the zero time.
func parseTime(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Year() <= 1 {
		return time.Time{}
	}
	return t
}
