package console

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"berth/controller"
	"berth/runtime"
)

// Options configures a Manager. The zero value is valid.
type Options struct {
	Log *slog.Logger
}

// Manager runs a pump for each console with output to read. Its methods are safe for
// concurrent use, and may be called before Run.
type Manager struct {
	engine Engine
	sink   Sink
	log    *slog.Logger

	mu       sync.Mutex // never held during a call of the engine or the sink
	consoles map[key]*consoleState
	waiting  []key               // consoles whose pump Run must start
	started  chan struct{}       // signalled when waiting is not empty
	changed  map[string]struct{} // ids that Source names next: the pattern matched, or the output is complete
	reported chan struct{}       // signalled when changed is not empty
}

// New returns a manager. Its pumps start with Run.
func New(engine Engine, sink Sink, o Options) *Manager {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Manager{
		engine:   engine,
		sink:     sink,
		log:      o.Log,
		consoles: map[key]*consoleState{},
		started:  make(chan struct{}, 1),
		changed:  map[string]struct{}{},
		reported: make(chan struct{}, 1),
	}
}

// Run runs the pumps until ctx ends, then waits for them.
func (m *Manager) Run(ctx context.Context) error {
	var pumps sync.WaitGroup
	defer pumps.Wait()
	for {
		for _, k := range m.takeWaiting() {
			pumps.Go(func() {
				_ = controller.Persist(ctx, m.log, "console", func(ctx context.Context) error { m.runPump(ctx, k); return nil }, "container", k.id)
			})
		}
		select {
		case <-m.started:
		case <-ctx.Done():
			return nil
		}
	}
}

func (m *Manager) takeWaiting() []key {
	m.mu.Lock()
	defer m.mu.Unlock()
	waiting := m.waiting
	m.waiting = nil
	return waiting
}

// Follow starts to read the output of a run. It does not wait, and does nothing if the
// output is being read or was read. The controller calls it for each running container
// that it observes, and once more after the exit.
func (m *Manager) Follow(t Target) {
	if !hasBegun(t) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.state(keyOf(t))
	if s.leaving {
		return
	}
	s.setTarget(t)
	if !t.Ended || s.read != runOf(t) {
		m.startPump(keyOf(t), s)
	}
}

// startPump makes Run start the pump of a console, unless it is running.
func (m *Manager) startPump(k key, s *consoleState) {
	if s.pumping {
		return
	}
	s.pumping = true
	m.waiting = append(m.waiting, k)
	signal(m.started)
}

// state returns the state of a console, and creates it if there is none.
func (m *Manager) state(k key) *consoleState {
	s := m.consoles[k]
	if s == nil {
		s = &consoleState{
			retry:   make(chan struct{}, 1),
			rescan:  make(chan struct{}, 1),
			changed: make(chan struct{}),
		}
		m.consoles[k] = s
	}
	return s
}

// OutputComplete reports whether the journal has the whole output of an exited run, or, of a
// server, has read maxBacklog of it since the first call. If it returns false, the output is
// being read, and Source names the container once it returns true. It does not wait.
func (m *Manager) OutputComplete(t Target) bool {
	t.Ended = true
	_, done := m.drain(t)
	if !done {
		m.mu.Lock()
		defer m.mu.Unlock()
		s := m.state(keyOf(t))
		done = s.read == runOf(t) && s.complete || t.Role == runtime.Server && s.backlog > maxBacklog
		s.awaited = !done
	}
	return done
}

// Drain waits until the journal has all output of an exited container that the engine
// has, or until the container is gone. The controller calls it before it removes a
// container.
func (m *Manager) Drain(ctx context.Context, t Target) error {
	t.Ended = true
	for {
		changed, done := m.drain(t)
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// drain starts to read the rest of the output of t. It returns done if there is no rest,
// and otherwise a channel that is closed when that may have changed.
func (m *Manager) drain(t Target) (changed <-chan struct{}, done bool) {
	if !hasBegun(t) {
		return nil, true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.state(keyOf(t))
	if s.leaving || (s.read == runOf(t) && s.complete) {
		return nil, true
	}
	if s.target.Pattern != "" && runOf(s.target) == runOf(t) && t.Pattern == "" {
		t.Pattern, t.From = s.target.Pattern, s.target.From
	}
	s.setTarget(t)
	m.startPump(keyOf(t), s)
	return s.changed, false
}

// Matched reports whether a run of a server has printed its start pattern. An empty
// pattern matches as soon as the run is followed.
func (m *Manager) Matched(id, containerID string, startedAt time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.consoles[key{id, runtime.Server}]
	return s != nil && s.matched && runOf(s.target) == run{containerID, startedAt.UnixNano()}
}

// Running returns the engine's id and the start time of a container's server. It returns
// false if the server is not running.
func (m *Manager) Running(id string) (containerID string, startedAt time.Time, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.consoles[key{id, runtime.Server}]
	if s == nil || s.target.Ended || s.target.ContainerID == "" {
		return "", time.Time{}, false
	}
	return s.target.ContainerID, s.target.StartedAt, true
}

// RunningIDs returns the ids of all containers whose server is running.
func (m *Manager) RunningIDs() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ids []string
	for k, s := range m.consoles {
		if k.role == runtime.Server && !s.target.Ended && s.target.ContainerID != "" {
			ids = append(ids, k.id)
		}
	}
	return ids
}

// Input sends a line to the running server of a container. It appends a line feed to data
// if there is none, unless data is one control character, as typed with Ctrl. It returns runtime.ErrNotRunning or the error of the engine.
func (m *Manager) Input(ctx context.Context, id string, data []byte) error {
	containerID, err := m.server(ctx, id)
	if err != nil {
		return err
	}
	control := len(data) == 1 && data[0] < ' '
	if !control && (len(data) == 0 || data[len(data)-1] != '\n') {
		data = append(data[:len(data):len(data)], '\n')
	}
	return m.engine.Input(ctx, containerID, data)
}

// server returns the engine's id of the running server of a container. One that berth has not followed since its
// own start may run nevertheless: the engine knows.
func (m *Manager) server(ctx context.Context, id string) (containerID string, err error) {
	m.mu.Lock()
	var known Target
	if s := m.consoles[key{id, runtime.Server}]; s != nil {
		known = s.target
	}
	m.mu.Unlock()
	if known.ContainerID == "" {
		state, err := m.engine.Inspect(ctx, runtime.Name{ID: id, Role: runtime.Server})
		if err != nil && !errors.Is(err, runtime.ErrNotFound) {
			return "", err
		}
		known.ContainerID, known.Ended = state.ContainerID, !state.Running
	}
	if known.Ended {
		return "", runtime.ErrNotRunning
	}
	return known.ContainerID, nil
}

// Resize changes the size of the terminal of a container's running server. It returns
// runtime.ErrNotRunning or the error of the engine.
func (m *Manager) Resize(ctx context.Context, id string, columns, rows uint) error {
	containerID, err := m.server(ctx, id)
	if err != nil {
		return err
	}
	return m.engine.Resize(ctx, containerID, columns, rows)
}

// Forget stops the pumps of a container and removes its journal. The controller calls it
// before it purges the container's record.
func (m *Manager) Forget(ctx context.Context, id string) error {
	for _, role := range []runtime.Role{runtime.Server, runtime.Install} {
		if err := m.stopPump(ctx, key{id, role}); err != nil {
			return err
		}
	}
	err := m.sink.Remove(id)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.consoles, key{id, runtime.Server})
	delete(m.consoles, key{id, runtime.Install})
	return err
}

// stopPump stops the pump of a console and waits for its end.
func (m *Manager) stopPump(ctx context.Context, k key) error {
	for {
		m.mu.Lock()
		s := m.state(k)
		s.leaving = true
		if s.cancel != nil {
			s.cancel()
		}
		changed, pumping := s.changed, s.pumping
		m.mu.Unlock()
		if !pumping {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Source calls notify with the id of each container whose start pattern matches: first
// with all that have matched, then with each new one. It also names a container once
// OutputComplete, which returned false for it, returns true. It runs until ctx ends. At
// most one Source may run at a time.
func (m *Manager) Source(ctx context.Context, notify func(id string)) error {
	m.mu.Lock()
	for k, s := range m.consoles {
		if k.role == runtime.Server && s.matched {
			m.changed[k.id] = struct{}{}
		}
	}
	m.mu.Unlock()
	for {
		for _, id := range m.takeChanged() {
			notify(id)
		}
		select {
		case <-m.reported:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (m *Manager) takeChanged() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	ids := make([]string, 0, len(m.changed))
	for id := range m.changed {
		ids = append(ids, id)
	}
	clear(m.changed)
	return ids
}

// match records that the pattern of a run has matched.
func (m *Manager) match(k key, r run, pattern string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.consoles[k]
	if s == nil || s.matched || runOf(s.target) != r || s.target.Pattern != pattern {
		return
	}
	s.matched = true
	m.changed[k.id] = struct{}{}
	signal(m.reported)
}
