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

// Logs calls each with the lines after since of t's container. Unless t.Ended, it
// follows the output until the container exits. It reads the engine's log
// instead of an attach: a slow reader of an attach blocks the container's process.
//
// The engine ends a followed stream at the container's exit, sometimes before it has
// sent the last lines. If the stream ends before the run, Logs returns
// runtime.ErrUnavailable.
func (e *Engine) Logs(ctx context.Context, t runtime.Target, since time.Time, each func(runtime.Line) error) error {
	if err := e.readLog(ctx, t, since, each); err != nil || t.Ended {
		return err
	}
	return ignore(e.requireEnded(ctx, t), runtime.ErrNotFound)
}

// requireEnded returns an error while the run of t continues.
func (e *Engine) requireEnded(ctx context.Context, t runtime.Target) error {
	c, err := e.inspectOwned(ctx, t.ContainerID)
	if err == nil && c.State.Running && parseTime(c.State.StartedAt).Equal(t.StartedAt) {
		return fmt.Errorf("logs of %s: %w: the stream ended before the container did", t.ContainerID, runtime.ErrUnavailable)
	}
	return err
}

// tails are the numbers of last records in which readLog looks for a time before it
// lets the engine search its whole log.
var tails = [...]string{"512", "32768"}

// errTail means that a stream begins after the lines that are wanted.
var errTail = errors.New("the tail begins too late")

// readLog calls each with the lines after since, in one stream to its end. With the
// parameter since the engine decodes its whole log, which costs a processor for a
// second each time that a container with a long log starts or exits. So readLog
// requests the last records, and more if they do not reach back to since. See ADR 0005.
func (e *Engine) readLog(ctx context.Context, t runtime.Target, since time.Time, each func(runtime.Line) error) error {
	options := container.LogsOptions{ShowStdout: true, ShowStderr: true, Timestamps: true, Follow: !t.Ended}
	if since.IsZero() {
		return e.readStream(ctx, t, options, each)
	}
	for _, options.Tail = range tails {
		if err := e.readStream(ctx, t, options, after(since, each)); !errors.Is(err, errTail) {
			return err
		}
	}
	options.Tail, options.Since = "", sinceParameter(since)
	return e.readStream(ctx, t, options, each)
}

// after returns a function that skips the lines of a stream up to the first one after
// since. It returns errTail if that is the stream's first line.
func after(since time.Time, each func(runtime.Line) error) func(runtime.Line) error {
	first, begun := true, false
	return func(l runtime.Line) error {
		begun = begun || l.Time.After(since)
		switch {
		case begun && first:
			return errTail
		case begun:
			return each(l)
		}
		first = false
		return nil
	}
}

// readStream reads one stream to its end.
func (e *Engine) readStream(ctx context.Context, t runtime.Target, options container.LogsOptions, each func(runtime.Line) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, err := e.openLogs(ctx, cancel, t, options)
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

// openLogs opens the stream. Only the beginning of the answer has a deadline.
func (e *Engine) openLogs(ctx context.Context, cancel func(), t runtime.Target, options container.LogsOptions) (io.ReadCloser, error) {
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

// sinceParameter returns t plus 1 ns in the engine's format, since the engine's parameter
// is inclusive.
func sinceParameter(t time.Time) string {
	t = t.Add(time.Nanosecond)
	return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond())
}

// inspectOwned inspects a container by the engine's id. It returns ErrNotFound for a
// container of another store.
func (e *Engine) inspectOwned(ctx context.Context, containerID string) (c container.InspectResponse, err error) {
	err = e.calls.do(ctx, opInspect, "container "+containerID, func(ctx context.Context) error {
		c, err = e.conn.client().ContainerInspect(ctx, containerID)
		return err
	})
	switch {
	case err != nil:
		return c, err
	case c.ContainerJSONBase == nil || c.State == nil || c.Config == nil:
		return c, fmt.Errorf("container %s: %w: its answer to an inspect is incomplete", containerID, runtime.ErrUnavailable)
	}
	if _, ours := nameOf(e.cfg.StoreID, c.Config.Labels); !ours {
		return c, fmt.Errorf("container %s: %w", containerID, runtime.ErrNotFound)
	}
	return c, nil
}
