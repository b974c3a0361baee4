package console

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"berth/runtime"
)

// Options of a Manager. The zero Options work.
type Options struct {
	Log *slog.Logger
}

// Manager has a pump for each console that prints. Its methods may be called at
// any time, also before Run.
type Manager struct {
	engine Engine
	sink   Sink
	log    *slog.Logger

	mu       sync.Mutex // held for a few words of memory only
	consoles map[key]*state
	waiting  []key               // whose pump is to be begun
	begun    chan struct{}       // there is something in waiting
	changed  map[string]struct{} // ids whose pattern matched or whose end was read, for Source
	reported chan struct{}       // there is something in news
}

// state is what is known of one console.
type state struct {
	target  Target
	pumping bool
	cancel  context.CancelFunc // of the pump; nil until it has begun
	read    run                // the run whose output was read to its end
	final   bool               // and that was all: the engine said so, or the read began after the end
	matched bool               // target's pattern
	awaited bool               // OutputComplete was asked: Source tells when it is read
	wordy   int                // what was read since then; see heed
	leaving bool               // Forget waits
	retry   chan struct{}      // do not wait for the backoff
	rescan  chan struct{}      // the pattern or the run is another
	changed chan struct{}      // closed when any of the above may be different
}

// New makes a manager; Run lets it work.
func New(engine Engine, sink Sink, o Options) *Manager {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Manager{
		engine:   engine,
		sink:     sink,
		log:      o.Log,
		consoles: map[key]*state{},
		begun:    make(chan struct{}, 1),
		changed:  map[string]struct{}{},
		reported: make(chan struct{}, 1),
	}
}

// Run runs the pumps until ctx ends, then waits for them.
func (m *Manager) Run(ctx context.Context) error {
	var pumps sync.WaitGroup
	defer pumps.Wait()
	for {
		for _, k := range takeWaiting(m) {
			pumps.Go(func() { m.pump(ctx, k) })
		}
		select {
		case <-m.begun:
		case <-ctx.Done():
			return nil
		}
	}
}

func takeWaiting(m *Manager) []key {
	m.mu.Lock()
	defer m.mu.Unlock()
	waiting := m.waiting
	m.waiting = nil
	return waiting
}

// Follow sees to it that a run's output is read. It does not wait, and does
// nothing if that is being done or was done. It is called for each running
// container that is seen, and once more when it has ended.
func (m *Manager) Follow(t Target) {
	if t.ContainerID == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.state(keyOf(t))
	if s.leaving {
		return
	}
	m.aim(keyOf(t), s, t)
	if !t.Ended || s.read != runOf(t) {
		m.begin(keyOf(t), s)
	}
}

// aim makes t what a console is about.
func (m *Manager) aim(k key, s *state, t Target) {
	was := s.target
	s.target = t
	if runOf(was) != runOf(t) || was.Pattern != t.Pattern {
		s.matched = t.Pattern == ""
		signal(s.rescan)
	}
	if runOf(was) != runOf(t) {
		s.awaited, s.wordy = false, 0
	}
	if s.pumping && (runOf(was) != runOf(t) || was.Ended != t.Ended) {
		signal(s.retry)
	}
}

// begin lets a console's pump run, if it does not.
func (m *Manager) begin(k key, s *state) {
	if s.pumping {
		return
	}
	s.pumping = true
	m.waiting = append(m.waiting, k)
	signal(m.begun)
}

func (m *Manager) state(k key) *state {
	s := m.consoles[k]
	if s == nil {
		s = &state{
			retry:   make(chan struct{}, 1),
			rescan:  make(chan struct{}, 1),
			changed: make(chan struct{}),
		}
		m.consoles[k] = s
	}
	return s
}

func (s *state) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// OutputComplete says whether all that an ended run printed is in the journal, or enough
// of it: maxWordy of a flood. If not it is read, and Source tells when it was.
// It does not wait.
func (m *Manager) OutputComplete(t Target) bool {
	t.Ended = true
	_, done := m.drain(t)
	if !done {
		m.mu.Lock()
		defer m.mu.Unlock()
		s := m.state(keyOf(t))
		done = s.read == runOf(t) && s.final || s.wordy > maxWordy
		s.awaited = !done
	}
	return done
}

// Drain waits until all that the engine has of an ended container is in the
// journal, or the container is gone. It is called before a container is removed.
func (m *Manager) Drain(ctx context.Context, t Target) error {
	if t.ContainerID == "" {
		return nil
	}
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

func (m *Manager) drain(t Target) (changed <-chan struct{}, done bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.state(keyOf(t))
	if s.leaving || (s.read == runOf(t) && s.final) {
		return nil, true
	}
	if s.target.Pattern != "" && runOf(s.target) == runOf(t) && t.Pattern == "" {
		t.Pattern, t.From = s.target.Pattern, s.target.From
	}
	m.aim(keyOf(t), s, t)
	m.begin(keyOf(t), s)
	return s.changed, false
}

// Matched says whether a run of a server has printed its start pattern. With an
// empty pattern it has, as soon as the run is followed.
func (m *Manager) Matched(id, containerID string, startedAt time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.consoles[key{id, runtime.Server}]
	return s != nil && s.matched && runOf(s.target) == run{containerID, startedAt.UnixNano()}
}

// Running returns the engine's id of a container's running server, and when it
// was started.
func (m *Manager) Running(id string) (containerID string, startedAt time.Time, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.consoles[key{id, runtime.Server}]
	if s == nil || s.target.Ended || s.target.ContainerID == "" {
		return "", time.Time{}, false
	}
	return s.target.ContainerID, s.target.StartedAt, true
}

// RunningIDs returns the ids of all containers whose server runs.
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

// Input sends a line to the running server of a container: data, and a line feed
// if it has none. Its error is runtime.ErrNotRunning or the engine's.
func (m *Manager) Input(ctx context.Context, id string, data []byte) error {
	containerID, _, ok := m.Running(id)
	if !ok {
		return runtime.ErrNotRunning
	}
	if len(data) == 0 || data[len(data)-1] != '\n' {
		data = append(data[:len(data):len(data)], '\n')
	}
	return m.engine.Input(ctx, containerID, data)
}

// Forget ends a container's pumps and removes its journal. It is called before
// the container's record is.
func (m *Manager) Forget(ctx context.Context, id string) error {
	for _, role := range []runtime.Role{runtime.Server, runtime.Install} {
		if err := m.leave(ctx, key{id, role}); err != nil {
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

// leave ends a pump and waits for it.
func (m *Manager) leave(ctx context.Context, k key) error {
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

// Source notifies the id of each container whose start pattern matched: first
// of all that have, then of each that does; and of those that Heard was asked
// about in vain, once they are. It runs until ctx ends, and once at a time.
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

// match notes that a run's pattern has matched.
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
