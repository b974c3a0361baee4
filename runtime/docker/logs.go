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

// Logs calls each with the lines of a container after since, and with those to
// come while it runs if follow is set. It reads the engine's log and not an
// attach: a reader of an attach that is slow stops the container's process.
//
// When a followed stream ends, what is left is read once more: the engine ends
// it as soon as the container does, at times before the last lines are out. A
// stream that ends before its run does is runtime.ErrUnavailable.
func (e *Engine) Logs(ctx context.Context, containerID string, since time.Time, follow bool, each func(runtime.Line) error) error {
	l, err := e.logOf(ctx, containerID)
	if err != nil {
		return err
	}
	if !follow {
		return e.readLog(ctx, l, since, false, each)
	}
	h := handed{each: each, since: since}
	if err := e.readLog(ctx, l, since, true, h.first); err != nil {
		return err
	}
	if err := e.ended(ctx, l); err != nil {
		return except(err, runtime.ErrNotFound)
	}
	return except(e.readLog(ctx, l, h.since, false, h.again), runtime.ErrNotFound)
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

// ended is an error while the run that a log was opened in goes on.
func (e *core) ended(ctx context.Context, l containerLog) error {
	now, err := e.logOf(ctx, l.id)
	if err == nil && now.run != "" && now.run == l.run {
		return fmt.Errorf("logs of %s: %w: the stream ended before the container did", l.id, runtime.ErrUnavailable)
	}
	return err
}

// containerLog is the log of a container. It is all that is kept of an inspect
// for as long as the log is read.
type containerLog struct {
	id  string // of the container
	tty bool
	run string // when the run began, as the engine writes it; empty if none runs
}

func (e *core) logOf(ctx context.Context, containerID string) (containerLog, error) {
	c, err := e.ours(ctx, containerID)
	if err != nil {
		return containerLog{}, err
	}
	l := containerLog{id: c.ID, tty: c.Config.Tty}
	if c.State.Running {
		l.run = c.State.StartedAt
	}
	return l, nil
}

// readLog reads one stream to its end.
func (e *core) readLog(ctx context.Context, l containerLog, since time.Time, follow bool, each func(runtime.Line) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, err := e.openLogs(ctx, cancel, l.id, since, follow)
	if err != nil {
		return err
	}
	defer body.Close()
	if l.tty {
		err = readTTY(body, each)
	} else {
		err = readFrames(body, each)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errBroken):
		return fmt.Errorf("logs of %s: %w: %w", l.id, runtime.ErrUnavailable, err)
	}
	return err
}

// openLogs has a deadline for the answer to begin, and none for its end.
func (e *core) openLogs(ctx context.Context, cancel func(), id string, since time.Time, follow bool) (io.ReadCloser, error) {
	options := container.LogsOptions{ShowStdout: true, ShowStderr: true, Timestamps: true, Follow: follow, Since: after(since)}
	late := time.AfterFunc(opInspect.limit, cancel)
	body, err := e.cli.ContainerLogs(ctx, id, options)
	if late.Stop() {
		return body, explain(ctx, operation{name: "logs"}, id, err)
	}
	if err == nil {
		_ = body.Close()
	}
	return nil, fmt.Errorf("logs of %s: %w", id, runtime.ErrUnavailable)
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
		c, err = e.cli.ContainerInspect(ctx, containerID)
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
