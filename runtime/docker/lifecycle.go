package docker

import (
	"context"
	"errors"
	"fmt"

	"github.com/docker/docker/api/types/container"

	"berth/runtime"
)

// Start starts a container. It does nothing if the container runs.
func (e *Engine) Start(ctx context.Context, n runtime.Name) error {
	start := func(ctx context.Context, id string) error {
		err := e.conn.client().ContainerStart(ctx, id, container.StartOptions{})
		if classify(err) == runtime.ErrHost {
			err = e.unlessLink(ctx, id, err)
		}
		return e.unexecutable(err)
	}
	if !e.shared.Load() {
		if err := e.callContainer(ctx, opInspect, n, e.checkShared); err != nil {
			return err
		}
	}
	err := e.callContainer(ctx, opStart, n, start)
	if errors.Is(err, errNoNetwork) {
		if err := e.Connect(ctx, n); err != nil {
			return err
		}
		err = e.callContainer(ctx, opStart, n, start)
	}
	return err
}

// Resize changes the size of a container's terminal.
func (e *Engine) Resize(ctx context.Context, containerID string, columns, rows uint) error {
	if _, err := e.inspectOwned(ctx, containerID); err != nil {
		return err
	}
	return e.calls.do(ctx, opResize, "container "+containerID, func(ctx context.Context) error {
		return e.conn.client().ContainerResize(ctx, containerID, container.ResizeOptions{Height: rows, Width: columns})
	})
}

// Connect connects a container to the network of the containers, which it creates if it is
// missing. A container that has run names the network by its id, so one that was removed
// and created again is another: Connect ends that connection first.
func (e *Engine) Connect(ctx context.Context, n runtime.Name) error {
	if err := e.net.recreate(ctx); err != nil {
		return err
	}
	return e.callContainer(ctx, opNetwork, n, func(ctx context.Context, id string) error {
		cli := e.conn.client()
		_ = cli.NetworkDisconnect(ctx, e.cfg.Network, id, true) // it may have no connection
		return cli.NetworkConnect(ctx, e.cfg.Network, id, nil)
	})
}

// Signal sends a signal. It does nothing if the container does not run.
func (e *Engine) Signal(ctx context.Context, n runtime.Name, signal string) error {
	err := e.callContainer(ctx, opSignal, n, func(ctx context.Context, id string) error {
		return e.conn.client().ContainerKill(ctx, id, signal)
	})
	return ignore(err, errNotRunning)
}

// Kill sends SIGKILL and returns after the container's exit. It does nothing if
// the container does not run or does not exist. The engine answers after the
// exit, so Kill needs no further call.
func (e *Engine) Kill(ctx context.Context, n runtime.Name) error {
	err := e.callContainer(ctx, opKill, n, func(ctx context.Context, id string) error {
		return e.conn.client().ContainerKill(ctx, id, "KILL")
	})
	return ignore(err, errNotRunning, runtime.ErrNotFound)
}

// Remove removes a container that does not run, together with the anonymous
// volumes of its image: no other container can use them. Host directories that it
// mounts stay. Remove does nothing if the container does not exist.
func (e *Engine) Remove(ctx context.Context, n runtime.Name) error {
	err := e.callContainer(ctx, opRemove, n, func(ctx context.Context, id string) error {
		err := e.conn.client().ContainerRemove(ctx, id, container.RemoveOptions{RemoveVolumes: true})
		if err == nil {
			e.ids.drop(n, id)
			e.ooms.at.Delete(id)
		}
		return err
	})
	return ignore(err, runtime.ErrNotFound)
}

// Update changes the limits of a container, running or not. 0 leaves a limit
// unchanged; memory and swap change together.
func (e *Engine) Update(ctx context.Context, n runtime.Name, l runtime.Live) error {
	cfg, err := e.config(ctx)
	if err != nil {
		return err
	}
	limits := resources(l)
	limits.NanoCPUs = atMost(limits.NanoCPUs, cfg.cpus)
	return e.callContainer(ctx, opUpdate, n, func(ctx context.Context, id string) error {
		_, err := e.conn.client().ContainerUpdate(ctx, id, container.UpdateConfig{Resources: limits})
		return err
	})
}

// Unpause resumes a paused container. It does nothing if it is not paused.
func (e *Engine) Unpause(ctx context.Context, n runtime.Name) error {
	err := e.callContainer(ctx, opUnpause, n, func(ctx context.Context, id string) error {
		return e.conn.client().ContainerUnpause(ctx, id)
	})
	return ignore(err, errNotPaused, errNotRunning)
}

// callContainer makes a call on the container n by its id, which belongs to this store. If
// the cached id is out of date, the container is found once more.
func (e *Engine) callContainer(ctx context.Context, op operation, n runtime.Name, call func(ctx context.Context, id string) error) error {
	for range 2 {
		id, known := e.ids.get(n)
		if !known {
			c, err := e.find(ctx, n)
			if err != nil {
				return err
			}
			id = c.ID
		}
		err := e.calls.do(ctx, op, n.String(), func(ctx context.Context) error { return call(ctx, id) })
		if !errors.Is(err, runtime.ErrNotFound) {
			return err
		}
		e.ids.drop(n, id)
	}
	return fmt.Errorf("%s %s: %w", op.name, n, runtime.ErrNotFound)
}

// ignore returns err, or nil if err is one of done: the work was already done.
func ignore(err error, done ...error) error {
	for _, d := range done {
		if errors.Is(err, d) {
			return nil
		}
	}
	return err
}
