package fake

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"berth/runtime"
)

// Create creates a container that does not run, or adopts the one with the same
// spec hash.
func (e *Engine) Create(ctx context.Context, s runtime.Spec) (id string, err error) {
	err = e.do(ctx, "create", s.Name, func() error {
		id, err = e.core.create(s)
		return err
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

func (c *core) create(s runtime.Spec) (string, error) {
	b, there := c.containers[s.Name]
	switch {
	case c.foreign[s.Name]:
		return "", runtime.ErrUnmanaged
	case there && b.state.SpecHash == s.SpecHash:
		return b.state.ContainerID, nil
	case there && b.state.Running:
		return "", runtime.ErrRunning
	}
	if err := c.acceptable(s); err != nil {
		return "", err
	}
	s.Live.NoOOMKill = s.Live.NoOOMKill && !c.oomKills
	c.created++
	id := fmt.Sprintf("%064x", c.created)
	if there {
		delete(c.names, b.state.ContainerID)
	}
	c.names[id] = s.Name
	c.containers[s.Name] = &container{
		spec: s,
		state: runtime.State{ContainerID: id, ImageID: c.images[s.Image], SpecHash: s.SpecHash, Revision: s.Revision,
			Live: rounded(s.Live), TTY: s.TTY,
			StopSignal: s.StopSignal, StopTimeout: s.StopTimeout, Incarnation: s.Incarnation},
		changed: make(chan struct{}),
	}
	c.change(s.Name)
	return id, nil
}

// acceptable returns the error with which the engine refuses a spec.
func (c *core) acceptable(s runtime.Spec) error {
	switch {
	case c.images[s.Image] == "":
		return runtime.ErrImageNotFound
	case s.Live.Memory != 0 && s.Live.Memory < 6<<20:
		return fmt.Errorf("%w: memory is below 6 MiB", runtime.ErrInvalid)
	}
	return c.mounts(s)
}

// Probe returns the error with which Create would refuse a spec.
func (e *Engine) Probe(ctx context.Context, s runtime.Spec) error {
	return e.do(ctx, "probe", s.Name, func() error { return e.core.acceptable(s) })
}

func (c *core) mounts(s runtime.Spec) error {
	for _, m := range s.Mounts {
		if c.missing[m.Source] {
			return fmt.Errorf("%w: %s", runtime.ErrMountMissing, m.Source)
		}
	}
	return nil
}

// Start starts a container.
func (e *Engine) Start(ctx context.Context, n runtime.Name) error {
	if err := e.core.before(ctx, "start", n); err != nil {
		return err
	}
	if err := e.start(n); err != nil {
		return err
	}
	return e.core.after("start", n)
}

func (e *Engine) start(n runtime.Name) error {
	e.core.mu.Lock()
	s, begun, err := e.core.run(n)
	e.core.mu.Unlock()
	if err != nil {
		return fmt.Errorf("start %s: %w", n, err)
	}
	if begun && e.OnStart != nil {
		e.OnStart(s)
	}
	return nil
}

// run begins a run of n; begun is false if there is one already.
func (c *core) run(n runtime.Name) (s runtime.Spec, begun bool, err error) {
	b, ok := c.containers[n]
	if !ok {
		return s, false, runtime.ErrNotFound
	}
	if err := b.reach(); err != nil {
		return s, false, err
	}
	if b.state.Running {
		return b.spec, false, nil
	}
	if err := c.runnable(b.spec); err != nil {
		return s, false, err
	}
	if b.held {
		if !b.state.Starting {
			b.state.Starting = true
			c.change(n)
		}
		return s, false, fmt.Errorf("%w: the image is being pulled", runtime.ErrStarting)
	}
	b.state.Running, b.state.Starting, b.state.StartedAt = true, false, c.tick()
	b.state.ExitCode, b.state.OOMKilled, b.state.OOMAt, b.state.Interrupted = 0, false, time.Time{}, false
	c.change(n)
	return b.spec, true, nil
}

func (c *core) runnable(s runtime.Spec) error {
	if err := c.mounts(s); err != nil {
		return err
	}
	if len(s.Command) > 0 && c.bad[s.Command[0]] {
		return fmt.Errorf("%w: %s", runtime.ErrBadCommand, s.Command[0])
	}
	for _, p := range s.Ports {
		if c.bound(p, s.Name) {
			return fmt.Errorf("%w: %s:%d/%s", runtime.ErrPortTaken, p.IP, p.Port, p.Protocol)
		}
	}
	return nil
}

func (c *core) bound(p runtime.Port, by runtime.Name) bool {
	p.ContainerPort = 0
	if c.ports[p] {
		return true
	}
	for n, b := range c.containers {
		if n == by || !b.state.Running {
			continue
		}
		for _, q := range b.spec.Ports {
			q.ContainerPort = 0
			if q == p {
				return true
			}
		}
	}
	return false
}

// end ends the run of n; it does nothing if n does not run.
func (c *core) end(n runtime.Name, code int) {
	b, ok := c.containers[n]
	if !ok || !b.state.Running {
		return
	}
	b.state.Running, b.state.Paused, b.lost = false, false, false
	if b.state.Leaving {
		b.state.Leaving, b.state.Interrupted = false, true
	}
	b.state.ExitCode, b.state.FinishedAt = code, c.tick()
	c.change(n)
}

// Signal sends a signal. HUP, INT, QUIT and TERM end a container unless
// World.Deafen was called.
func (e *Engine) Signal(ctx context.Context, n runtime.Name, signal string) error {
	return e.do(ctx, "signal", n, func() error {
		number, ok := signals[strings.TrimPrefix(strings.ToUpper(signal), "SIG")]
		if !ok {
			return fmt.Errorf("%w: signal %s", runtime.ErrInvalid, signal)
		}
		b, ok := e.core.containers[n]
		if !ok {
			return runtime.ErrNotFound
		}
		if !b.state.Running {
			return nil
		}
		if err := b.reach(); err != nil {
			return err
		}
		b.signals = append(b.signals, signal)
		if number == 9 || number != 0 && !b.ignoresSignals {
			e.core.end(n, 128+number)
		}
		return nil
	})
}

// signals holds the numbers of the signals that an engine accepts; 0 means that
// the signal does not end the container.
var signals = map[string]int{"HUP": 1, "INT": 2, "QUIT": 3, "KILL": 9, "TERM": 15, "USR1": 0, "USR2": 0, "WINCH": 0, "CONT": 0}

// Kill ends the run of a container at once.
func (e *Engine) Kill(ctx context.Context, n runtime.Name) error {
	return e.do(ctx, "kill", n, func() error {
		b, ok := e.core.containers[n]
		if !ok {
			return nil
		}
		if err := b.reach(); err != nil {
			return err
		}
		e.core.end(n, 137)
		if b.state.Starting {
			b.state.Starting = false
			e.core.change(n)
		}
		return nil
	})
}

// Remove removes a container that does not run.
func (e *Engine) Remove(ctx context.Context, n runtime.Name) error {
	return e.do(ctx, "remove", n, func() error {
		b, ok := e.core.containers[n]
		if !ok {
			return nil
		}
		if err := b.reach(); err != nil {
			return err
		}
		if b.state.Running {
			return runtime.ErrRunning
		}
		e.core.forget(n)
		return nil
	})
}

// forget removes n and wakes its readers, which then find no container.
func (c *core) forget(n runtime.Name) {
	c.change(n)
	if b, there := c.containers[n]; there {
		delete(c.names, b.state.ContainerID)
	}
	delete(c.containers, n)
}

// Update changes the limits; 0 leaves a limit unchanged.
func (e *Engine) Update(ctx context.Context, n runtime.Name, l runtime.Live) error {
	return e.do(ctx, "update", n, func() error {
		b, ok := e.core.containers[n]
		if !ok {
			return runtime.ErrNotFound
		}
		if l.Memory != 0 && l.Memory < 6<<20 {
			return fmt.Errorf("%w: memory is below 6 MiB", runtime.ErrInvalid)
		}
		if err := b.reach(); err != nil {
			return err
		}
		b.state.Live = merge(b.state.Live, l)
		e.core.change(n)
		return nil
	})
}

// KeepOOMKill makes the engine ignore runtime.Live.NoOOMKill, as one with cgroup v2 does.
func KeepOOMKill(w *World) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	w.core.oomKills = true
}

// rounded rounds limits as an engine does: it counts billionths of a CPU.
func rounded(l runtime.Live) runtime.Live {
	l.CPU = math.Round(l.CPU*1e9) / 1e9
	return l
}

func merge(old, l runtime.Live) runtime.Live {
	if l.Memory != 0 {
		old.Memory, old.Swap = l.Memory, l.Swap
	}
	if l.CPU != 0 {
		old.CPU = rounded(l).CPU
	}
	if l.Pids != 0 {
		old.Pids = l.Pids
	}
	if l.Cpuset != "" {
		old.Cpuset = l.Cpuset
	}
	return old
}

// Unpause resumes a paused container.
func (e *Engine) Unpause(ctx context.Context, n runtime.Name) error {
	return e.do(ctx, "unpause", n, func() error {
		b, ok := e.core.containers[n]
		if !ok {
			return runtime.ErrNotFound
		}
		if b.state.Paused {
			b.state.Paused = false
			e.core.change(n)
		}
		return nil
	})
}

// Connect connects a container that World.Detach has disconnected.
func (e *Engine) Connect(ctx context.Context, n runtime.Name) error {
	return e.do(ctx, "connect", n, func() error {
		b, ok := e.core.containers[n]
		if !ok {
			return runtime.ErrNotFound
		}
		b.state.Detached = false
		e.core.change(n)
		return nil
	})
}

// Account returns the numbers of the spec's user; 0 for names.
func (e *Engine) Account(ctx context.Context, n runtime.Name) (a runtime.Account, err error) {
	err = e.do(ctx, "account", n, func() error {
		b, ok := e.core.containers[n]
		if !ok {
			return runtime.ErrNotFound
		}
		_, _ = fmt.Sscanf(b.spec.User, "%d:%d", &a.UID, &a.GID)
		return nil
	})
	return a, err
}
