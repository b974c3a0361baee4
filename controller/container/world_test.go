package container_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/controller/container"
	"berth/runtime"
	"berth/runtime/fake"
	"berth/store"
)

var (
	server    = runtime.Name{ID: "mc", Role: runtime.Server}
	installer = runtime.Name{ID: "mc", Role: runtime.Install}
)

// console is a Console whose every run matches at once, unless held, and is
// read at once, unless unread.
type console struct {
	engine  *fake.Engine
	held    atomic.Bool // no start pattern matches
	unread  atomic.Bool // output is missing
	follows atomic.Int64
	forgot  func()
}

func (c *console) Follow(runtime.Target)                       { c.follows.Add(1) }
func (c *console) Matched(string, string, time.Time) bool      { return !c.held.Load() }
func (c *console) OutputComplete(runtime.Target) bool          { return !c.unread.Load() }
func (c *console) Drain(context.Context, runtime.Target) error { return nil }
func (c *console) Forget(context.Context, string) error {
	if c.forgot != nil {
		c.forgot()
	}
	return nil
}
func (c *console) Input(ctx context.Context, id string, b []byte) error {
	return c.engine.Input(ctx, c.engine.Outside.State(runtime.Name{ID: id, Role: runtime.Server}).ContainerID, b)
}

// pins accepts every mount, unless it refuses them with an error.
type pins struct {
	mu  sync.Mutex
	err error
}

func (p *pins) refuse(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func (p *pins) Pin(_ context.Context, _ runtime.Name, m []runtime.Mount) ([]runtime.Mount, func(), error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil && len(m) > 0 {
		return nil, nil, p.err
	}
	return m, func() {}, nil
}

// world is a store, an engine in memory and a running container loop, all in
// one synctest bubble.
type world struct {
	t       *testing.T
	store   *store.Store
	engine  *fake.Engine
	console *console
	rec     *container.Reconciler
	jump    atomic.Int64 // by which the host's clock was set, in ns
}

// now is the host's clock.
func (w *world) now() time.Time {
	if d := w.jump.Load(); d != 0 {
		return time.Now().Add(time.Duration(d)).Round(0)
	}
	return time.Now()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s, err := store.Open("", store.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	e := fake.New(nil)
	e.Outside.AddImage("i")
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	c := &console{engine: e}
	w := &world{t: t, store: s, engine: e, console: c}
	w.rec = &container.Reconciler{
		Metrics: controller.NewMetrics(prometheus.NewRegistry()),
		Store:   s, Engine: e, Console: c, Log: log,
		Pulls:        container.NewPuller(e, 2, log),
		Preparations: container.NewPreparations(log),
		Semaphore:    container.NewSemaphore(4), Mounts: &pins{},
		Options: container.Options{OrphanGrace: time.Minute, BootID: "boot", Now: w.now,
			Crash: container.CrashBackOff{BackOff: controller.BackOff{Initial: 10 * time.Second, Max: 5 * time.Minute}, ResetAfter: 10 * time.Minute}},
		Auth: func(string, string) runtime.Auth { return runtime.Auth{} },
		Volumes: container.HostVolumes{
			Mount:     func(id string) runtime.Mount { return runtime.Mount{Source: "/volumes/" + id} },
			Own:       func(context.Context, string, container.Accounts) (string, error) { return "", nil },
			Configure: func(context.Context, string, []v1.ConfigFile, map[string]string) []error { return nil },
		},
	}
	return w
}

// live runs a test with a world whose loop runs.
func live(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.run()()
		test(w)
	})
}

// run starts the daemon's part that this package is; stop ends it.
func (w *world) run() (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	loop := &controller.Loop{Name: "container", Reconciler: w.rec, Failed: w.rec.Failed, Workers: 8, Log: w.rec.Log,
		BackOff:      controller.BackOff{Initial: 500 * time.Millisecond, Max: 5 * time.Minute},
		Metrics:      w.rec.Metrics,
		DesiredState: []controller.Source{store.Containers.Source(w.store, store.SpecChanged)},
		Signals:      []controller.Source{w.rec.EngineChanges(func() {}), container.Volumes(w.store), w.rec.Resync(time.Minute)},
		Awaited:      []controller.Source{w.rec.Pulls.Source, w.rec.Preparations.Source, w.rec.Semaphore.Source}}
	if w.rec.Roots != nil {
		loop.Signals = append(loop.Signals, w.rec.Roots.Source())
	}
	done := make(chan struct{}, 3)
	go func() { loop.Run(ctx); done <- struct{}{} }()
	go func() { w.rec.Pulls.Run(ctx); done <- struct{}{} }()
	go func() { w.rec.Preparations.Run(ctx); done <- struct{}{} }()
	return func() { cancel(); <-done; <-done; <-done }
}

// refuse makes each op on n fail with err until agree is called.
func (w *world) refuse(op string, n runtime.Name, err error) (agree func()) {
	w.engine.Outside.Fail(func(o string, m runtime.Name) error {
		if o == op && m == n {
			return err
		}
		return nil
	})
	return func() { w.engine.Outside.Fail(nil) }
}

func (w *world) create(change func(*v1.ContainerSpec)) {
	w.t.Helper()
	spec := v1.ContainerSpec{Image: "i", VolumeID: "v", InstallScript: new("true"), InstallGeneration: 1, Power: v1.PowerOff,
		RestartPolicy: v1.RestartPolicy{Mode: v1.RestartOnFailure}}
	if change != nil {
		change(&spec)
	}
	require.NoError(w.t, w.store.Update(func(tx *store.Tx) error { return store.Containers.Create(tx, "mc", spec) }))
	synctest.Wait()
}

// installed creates a container and finishes its installation.
func (w *world) installed(change func(*v1.ContainerSpec)) {
	w.t.Helper()
	w.create(change)
	w.engine.Outside.Exit(installer, 0)
	w.want(v1.Ready)
}

func (w *world) change(change func(*v1.ContainerSpec)) {
	w.t.Helper()
	w.changeOf("mc", change)
}

func (w *world) changeOf(id string, change func(*v1.ContainerSpec)) {
	w.t.Helper()
	require.NoError(w.t, w.store.Update(func(tx *store.Tx) error {
		return store.Containers.SetSpec(tx, id, func(s *v1.ContainerSpec) error { change(s); return nil })
	}))
	synctest.Wait()
}

func on(s *v1.ContainerSpec)   { s.Power = v1.PowerOn; s.RunGeneration++ }
func kill(s *v1.ContainerSpec) { s.Power, s.KillGeneration = v1.PowerOff, s.RunGeneration }

// get returns the container once all goroutines are blocked.
func (w *world) get() v1.Container {
	w.t.Helper()
	return w.getOf("mc")
}

func (w *world) getOf(id string) (c v1.Container) {
	w.t.Helper()
	synctest.Wait()
	c, err := store.Containers.Get(w.store.Read(), id)
	require.NoError(w.t, err)
	return c
}

func (w *world) want(p v1.Phase) v1.Container {
	w.t.Helper()
	c := w.get()
	require.Equal(w.t, p, c.Status.Phase, "message %q, engine %v", c.Status.Message, w.engine.Outside.Ops())
	return c
}

func (w *world) gone() bool {
	synctest.Wait()
	_, err := store.Containers.Get(w.store.Read(), "mc")
	return errors.Is(err, store.ErrNotFound)
}

// phases returns the data of every state event so far.
func (w *world) phases() (phases []string) {
	w.t.Helper()
	return w.events(v1.EventState)
}

// events returns the data of every event of a kind so far.
func (w *world) events(kind string) (data []string) {
	w.t.Helper()
	events, err := store.ReadEvents(w.store.Read(), 0, 1000)
	for i, e := range events {
		require.Equal(w.t, uint64(i+1), e.Seq)
		if e.Event == kind {
			data = append(data, e.Data)
		}
	}
	require.NoError(w.t, err)
	return data
}

// count returns how often the engine was asked to do op to n.
func (w *world) count(op string, n runtime.Name) (times int) {
	for _, o := range w.engine.Outside.Ops() {
		if o.Op == op && o.Name == n {
			times++
		}
	}
	return times
}
