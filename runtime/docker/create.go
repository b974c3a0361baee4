package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docker/docker/api/types/container"

	"berth/runtime"
)

// createWaits are the pauses before Create tries again: a name can be taken by
// a container that is being made or removed, and not yet or no longer there.
var createWaits = []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, time.Second}

// Create makes a container that does not run. One of the same name and stamp
// is adopted: it is what an earlier call made whose answer was lost. One with
// another stamp is removed first, or ErrRunning if it runs.
func (e *Engine) Create(ctx context.Context, s runtime.Spec) (string, error) {
	if err := e.net.ensure(ctx); err != nil {
		return "", err
	}
	for _, pause := range createWaits {
		if err := wait(ctx, pause); err != nil {
			return "", err
		}
		id, err := e.create(ctx, s)
		if err != nil {
			e.ids.doubt() // it may have been made all the same, now or later
		}
		switch {
		case err == nil:
			e.ids.put(s.Name, id)
			return id, nil
		case errors.Is(err, errNoNetwork):
			err = e.net.again(ctx)
		case errors.Is(err, errConflict):
			id, err = e.yield(ctx, s)
		}
		if err != nil || id != "" {
			return id, err
		}
	}
	return "", fmt.Errorf("create %s: its name stays taken by what cannot be seen", describe(s.Name))
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *core) create(ctx context.Context, s runtime.Spec) (id string, err error) {
	config, host := build(e.cfg, s)
	err = e.calls.do(ctx, opCreate, describe(s.Name), func(ctx context.Context) error {
		made, err := e.conn.client().ContainerCreate(ctx, config, host, nil, nil, engineName(e.cfg.StoreID, s.Name))
		if err == nil && made.ID == "" {
			err = fmt.Errorf("%w: its answer has no id", runtime.ErrUnavailable)
		}
		e.warn(s.Name, made)
		id = made.ID
		return err
	})
	return id, err
}

func (e *core) warn(n runtime.Name, made container.CreateResponse) {
	for _, w := range made.Warnings {
		e.log.Warn("engine warned", "container", n.ID, "role", n.Role, "warning", w)
	}
}

// yield deals with the container that has the name of s: it is adopted, or
// removed so that the name is free and id is empty, or is not ours.
func (e *core) yield(ctx context.Context, s runtime.Spec) (id string, err error) {
	name := engineName(e.cfg.StoreID, s.Name)
	c, err := e.inspect(ctx, s.Name, name)
	switch {
	case errors.Is(err, errNotOurs):
		return "", fmt.Errorf("create %s: %w: %s", describe(s.Name), runtime.ErrUnmanaged, name)
	case errors.Is(err, runtime.ErrNotFound):
		return "", nil // gone since, or not yet there
	case err != nil:
		return "", err
	case c.Config.Labels[labelSpec] == s.SpecHash:
		return c.ID, nil
	case c.State.Running:
		return "", fmt.Errorf("create %s: one of another spec: %w", describe(s.Name), runtime.ErrRunning)
	}
	return "", e.remove(ctx, s.Name)
}
