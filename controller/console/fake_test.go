package console_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/controller/console"
	"berth/runtime"
)

// engine is an engine in memory that keeps the output of containers.
type engine struct {
	mu         sync.Mutex
	containers map[string]*container
	down       error // returned by every call if not nil
	reads      int
	newer      bool // since applies to the first line of a stream only; otherwise to every line
	inputs     []string
	running    map[string]string // the engine's ids of the servers that run, by internal_id
}

type container struct {
	lines   []runtime.Line
	ended   bool
	changed chan struct{}
	cut     error // ends the current or the next stream
	broken  bool  // every stream ends with an error
	deaf    bool  // every following stream ends with an error
	again   int   // the line that a stream returns to; 0 for none
	lacks   int   // the last lines that a stream lacks which follows the container to its exit
	removed bool  // no stream begins after the exit
}

func newEngine() *engine { return &engine{containers: map[string]*container{}} }

func (e *engine) change(id string, fn func(*container)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.containers[id]
	if c == nil {
		c = &container{changed: make(chan struct{})}
		e.containers[id] = c
	}
	fn(c)
	close(c.changed)
	c.changed = make(chan struct{})
}

func (e *engine) print(id string, data ...string) {
	e.change(id, func(c *container) {
		for _, d := range data {
			at := time.Now()
			if n := len(c.lines); n > 0 && !at.After(c.lines[n-1].Time) {
				at = c.lines[n-1].Time.Add(1)
			}
			c.lines = append(c.lines, runtime.Line{Time: at, Data: []byte(d)})
		}
	})
}

func (e *engine) end(id string) { e.change(id, func(c *container) { c.ended = true }) }

func (e *engine) remove(id string) {
	e.end(id)
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.containers, id)
}

// repeat makes the current streams repeat the lines from the n-th on.
func (e *engine) repeat(id string, n int) {
	e.change(id, func(c *container) { c.again = n })
}

// cut ends the streams of a container with an error. The container keeps running.
func (e *engine) cut(id string) {
	e.change(id, func(c *container) { c.cut = fmt.Errorf("unexpected EOF") })
}

func (e *engine) Logs(ctx context.Context, t runtime.Target, since time.Time, each func(runtime.Line) error) error {
	id, follow := t.ContainerID, !t.Ended
	e.mu.Lock()
	e.reads++
	e.mu.Unlock()
	at := 0
	for {
		e.mu.Lock()
		c, down := e.containers[id], e.down
		if down != nil || c == nil {
			e.mu.Unlock()
			if down != nil {
				return down
			}
			return runtime.ErrNotFound
		}
		if c.removed && c.ended && at == 0 && !follow {
			e.mu.Unlock()
			return runtime.ErrNotFound
		}
		if at > len(c.lines) {
			at = 0
		}
		if c.again > 0 && at >= len(c.lines) {
			at, c.again = c.again, 0
		}
		lines, ended, changed, cut := c.lines[at:], c.ended, c.changed, c.cut
		c.cut = nil
		if c.broken || (c.deaf && follow) {
			cut = fmt.Errorf("log is damaged")
		}
		at = len(c.lines)
		if ended && follow {
			lines = lines[:len(lines)-c.lacks]
		}
		e.mu.Unlock()
		if cut != nil {
			return cut
		}
		for _, l := range lines {
			if !l.Time.After(since) {
				continue
			}
			if e.newer {
				since = time.Time{}
			}
			if err := each(l); err != nil {
				return err
			}
		}
		if ended || !follow {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (e *engine) Inspect(_ context.Context, n runtime.Name) (runtime.State, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := e.running[n.ID]
	if id == "" || n.Role != runtime.Server {
		return runtime.State{}, runtime.ErrNotFound
	}
	return runtime.State{ContainerID: id, Running: true}, e.down
}

func (e *engine) Input(_ context.Context, id string, data []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.inputs = append(e.inputs, id+": "+string(data))
	return nil
}

func (e *engine) Resize(context.Context, string, uint, uint) error { return nil }

// life runs a test in a synctest bubble with a running manager.
func life(t *testing.T, test func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager)) {
	t.Helper()
	lifeOn(t, func(h *stream.Hub) console.Sink { return h }, test)
}

// lifeOn is life with a sink in front of the hub.
func lifeOn(t *testing.T, sink func(*stream.Hub) console.Sink, test func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		e, h := newEngine(), stream.New(dir, stream.Options{})
		m := console.New(e, sink(h), console.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { m.Run(ctx) })
		test(t, e, h, m)
		cancel()
		done.Wait()
	})
}

// texts returns the lines in the journal of a server.
func texts(t *testing.T, h *stream.Hub, id string) []string {
	t.Helper()
	return textsOf(t, h, id, v1.ServerConsole)
}

// textsOf returns the lines in the journal of a console.
func textsOf(t *testing.T, h *stream.Hub, id, role string) (list []string) {
	t.Helper()
	partial := false
	require.NoError(t, h.Since(t.Context(), id, role, time.Time{}, func(l v1.Line) bool {
		if partial && !l.Message {
			list[len(list)-1] += string(l.Data)
		} else {
			list = append(list, string(l.Data))
		}
		partial = l.Partial
		return true
	}))
	return list
}

func target(containerID string) console.Target {
	now := time.Now()
	return console.Target{ID: "mc", Role: runtime.Server, ContainerID: containerID, StartedAt: now, From: now}
}
