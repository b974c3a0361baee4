package fake

import (
	"context"
	"fmt"
	"time"

	"berth/runtime"
)

// byID finds a container by the engine's id.
func (c *core) byID(containerID string) (runtime.Name, *container) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, there := c.names[containerID]
	if !there {
		return runtime.Name{}, nil
	}
	return n, c.containers[n]
}

// Logs calls each with the lines after since. Unless t has ended, it follows the
// output while the container runs.
func (e *Engine) Logs(ctx context.Context, t runtime.Target, since time.Time, each func(runtime.Line) error) error {
	n, b := e.core.byID(t.ContainerID)
	if err := e.core.before(ctx, "logs", n); err != nil {
		return err
	}
	if b == nil {
		return fmt.Errorf("logs of %s: %w", t.ContainerID, runtime.ErrNotFound)
	}
	for {
		lines, running, changed := e.core.pending(b, since)
		for _, l := range lines {
			if err := each(l); err != nil {
				return err
			}
			since = l.Time
		}
		if len(lines) > 0 {
			continue
		}
		if t.Ended || !running {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := e.core.before(ctx, "logs", n); err != nil {
			return err
		}
	}
}

func (c *core) pending(b *container, since time.Time) (lines []runtime.Line, running bool, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, l := range b.lines {
		if l.Time.After(since) {
			lines = b.lines[i:len(b.lines):len(b.lines)]
			break
		}
	}
	return lines, b.state.Running, b.changed
}

// Input writes to the standard input of a container.
func (e *Engine) Input(ctx context.Context, containerID string, data []byte) error {
	n, b := e.core.byID(containerID)
	err := e.do(ctx, "input", n, func() error {
		if b == nil || !b.state.Running {
			return runtime.ErrNotRunning
		}
		return nil
	})
	if err == nil && e.OnInput != nil {
		e.OnInput(n, data)
	}
	return err
}

// Stats returns figures that are computed from the clock.
func (e *Engine) Stats(ctx context.Context, containerID string) (s runtime.Stats, err error) {
	n, b := e.core.byID(containerID)
	err = e.do(ctx, "stats", n, func() error {
		if b == nil {
			return runtime.ErrNotFound
		}
		if !b.state.Running {
			return runtime.ErrNotRunning
		}
		s = b.figures(e.core.now())
		return nil
	})
	if err != nil {
		return runtime.Stats{}, err
	}
	return s, nil
}

func (b *container) figures(now time.Time) runtime.Stats {
	limit := b.state.Live.Memory
	if limit == 0 {
		limit = 8 << 30
	}
	up := max(now.Sub(b.state.StartedAt), 0)
	return runtime.Stats{Read: now, CPU: up / 2, Memory: 32 << 20, MemoryLimit: limit, Pids: 1}
}

// Resize does nothing: a container in memory has no terminal.
func (e *Engine) Resize(context.Context, string, uint, uint) error { return nil }
