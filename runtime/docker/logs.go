package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/docker/docker/api/types/container"

	"berth/runtime"
)

// Logs calls each with the lines of t's container after since, and with those to
// come while the run goes on, unless it has ended. It reads the engine's log and
// not an attach: a reader of an attach that is slow stops the container's process.
//
// When a followed stream ends, what is left is read once more: the engine ends
// it as soon as the container does, at times before the last lines are out. A
// stream that ends before its run does is runtime.ErrUnavailable.
func (e *Engine) Logs(ctx context.Context, t runtime.Target, since time.Time, each func(runtime.Line) error) error {
	if t.Ended {
		return e.readLog(ctx, t, since, each)
	}
	h := handed{each: each, since: since}
	if err := e.readLog(ctx, t, since, h.first); err != nil {
		return err
	}
	if err := e.ended(ctx, t); err != nil {
		return except(err, runtime.ErrNotFound)
	}
	t.Ended = true
	return except(e.readLog(ctx, t, h.since, h.again), runtime.ErrNotFound)
}

// handed is what a stream handed on, as far as a second one from since on brings
// it again. All pieces of a long line have the time of its beginning, which is
// before that of what the other stream printed meanwhile; so a time alone does
// not say what was handed on.
type handed struct {
	each   func(runtime.Line) error
	since  time.Time // right before newest
	newest time.Time
	equal  int // lines of that time
	older  int // lines that came later, with an earlier time
}

func (h *handed) first(line runtime.Line) error {
	switch {
	case line.Time.After(h.newest):
		h.newest, h.since, h.equal, h.older = line.Time, line.Time.Add(-1), 1, 0
	case line.Time.Equal(h.newest):
		h.equal++
	default:
		h.older++
	}
	return h.each(line)
}

// again leaves out what was handed on. Some engines bring older lines that stand
// behind a newer one, and some do not.
func (h *handed) again(line runtime.Line) error {
	count := &h.equal
	switch {
	case line.Time.After(h.newest):
		return h.each(line)
	case line.Time.Before(h.newest):
		count = &h.older
	}
	if *count > 0 {
		*count--
		return nil
	}
	return h.each(line)
}

// ended is an error while the run of t goes on.
func (e *core) ended(ctx context.Context, t runtime.Target) error {
	c, err := e.ours(ctx, t.ContainerID)
	if err == nil && c.State.Running && when(c.State.StartedAt).Equal(t.StartedAt) {
		return fmt.Errorf("logs of %s: %w: the stream ended before the container did", t.ContainerID, runtime.ErrUnavailable)
	}
	return err
}

// readLog reads one stream to its end.
func (e *core) readLog(ctx context.Context, t runtime.Target, since time.Time, each func(runtime.Line) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, err := e.openLogs(ctx, cancel, t, since)
	if err != nil {
		return err
	}
	defer body.Close()
	if t.TTY {
		err = readTTY(body, each)
	} else {
		err = readFrames(body, each)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errBroken):
		return fmt.Errorf("logs of %s: %w: %w", t.ContainerID, runtime.ErrUnavailable, err)
	}
	return err
}

// openLogs has a deadline for the answer to begin, and none for its end.
func (e *core) openLogs(ctx context.Context, cancel func(), t runtime.Target, since time.Time) (io.ReadCloser, error) {
	options := container.LogsOptions{ShowStdout: true, ShowStderr: true, Timestamps: true, Follow: !t.Ended, Since: after(since)}
	late := time.AfterFunc(opInspect.limit, cancel)
	var body io.ReadCloser
	err := e.calls.negotiated(ctx, func(ctx context.Context) (err error) {
		body, err = e.conn.client().ContainerLogs(ctx, t.ContainerID, options)
		return err
	})
	if late.Stop() {
		return body, explain(ctx, operation{name: "logs"}, t.ContainerID, err)
	}
	if err == nil {
		_ = body.Close()
	}
	return nil, fmt.Errorf("logs of %s: %w", t.ContainerID, runtime.ErrUnavailable)
}

// after makes the engine's inclusive since exclusive.
func after(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	t = t.Add(time.Nanosecond)
	return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond())
}

// ours inspects a container by the engine's id; one that is not of this store
// is not found.
func (e *core) ours(ctx context.Context, containerID string) (c container.InspectResponse, err error) {
	err = e.calls.do(ctx, opInspect, "container "+containerID, func(ctx context.Context) error {
		c, err = e.conn.client().ContainerInspect(ctx, containerID)
		return err
	})
	switch {
	case err != nil:
		return c, err
	case c.ContainerJSONBase == nil || c.State == nil || c.Config == nil:
		return c, fmt.Errorf("container %s: %w: its answer is no container", containerID, runtime.ErrUnavailable)
	}
	if _, ours := nameOf(e.cfg.StoreID, c.Config.Labels); !ours {
		return c, fmt.Errorf("container %s: %w", containerID, runtime.ErrNotFound)
	}
	return c, nil
}
