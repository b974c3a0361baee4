package scale

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"berth/api/limit"
	"berth/api/server"
	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/controller"
	"berth/controller/console"
	"berth/controller/container"
	"berth/runtime"
	"berth/runtime/fake"
	"berth/store"
)

const token = "berth_00000000000000000000000000000000"

// fixed is a configuration that never changes.
type fixed struct{ config v1.Config }

func (f fixed) Current() v1.Config        { return f.config }
func (f fixed) Reload() ([]string, error) { return nil, nil }
func (fixed) Changed() <-chan struct{}    { return nil }

// unpinned mounts directories as they are.
type unpinned struct{}

func (unpinned) Pin(_ context.Context, _ runtime.Name, m []runtime.Mount) ([]runtime.Mount, func(), error) {
	return m, func() {}, nil
}

// node is what serves containers in a daemon, on an engine in memory.
type node struct {
	store    *store.Store
	consoles *console.Manager
	addr     string
	stop     func()
}

// engine is what a node calls.
type engine interface {
	container.Engine
	console.Engine
	Pull(ctx context.Context, ref string, auth runtime.Auth, progress func(runtime.Progress)) error
}

// heavyCalls and workers are those of the daemon.
const (
	heavyCalls = 16 // at most
	workers    = 8
)

// newNode starts a node on a directory.
func newNode(b *testing.B, dir string, engine *fake.Engine, resync time.Duration) *node {
	b.Helper()
	return newNodeOn(b, dir, engine, resync)
}

func newNodeOn(b *testing.B, dir string, engine engine, resync time.Duration) *node {
	b.Helper()
	before := debug.SetGCPercent(50) // as the daemon
	b.Cleanup(func() { debug.SetGCPercent(before) })
	db, err := store.Open(filepath.Join(dir, "store"), store.Options{})
	require.NoError(b, err)
	log := slog.New(slog.DiscardHandler)
	hub := stream.New(filepath.Join(dir, "console"), stream.Options{})
	consoles := console.New(engine, hub, console.Options{Log: log})
	pulls, permits := container.NewPuller(engine, 3, log), container.NewSemaphore(min(heavyCalls, 2*goruntime.NumCPU()))
	metrics := controller.NewMetrics(prometheus.NewRegistry())
	r := &container.Reconciler{
		Store: db, Metrics: metrics, Engine: engine, Console: consoles, Pulls: pulls, Log: log,
		Semaphore: permits, Preparations: container.NewPreparations(log), Mounts: unpinned{},
		Options: container.Options{OrphanGrace: time.Minute, Now: time.Now, BootID: "boot",
			Crash: container.CrashBackOff{BackOff: controller.BackOff{Initial: 10 * time.Second, Max: 5 * time.Minute}, ResetAfter: 10 * time.Minute}},
		Auth: func(string, string) runtime.Auth { return runtime.Auth{} },
		Volumes: container.HostVolumes{
			Mount:     func(id string) runtime.Mount { return runtime.Mount{Source: "/volumes/" + id} },
			Own:       func(context.Context, string, container.Accounts) (string, error) { return "", nil },
			Configure: func(context.Context, string, []v1.ConfigFile, map[string]string) []error { return nil },
		},
	}
	loop := &controller.Loop{Name: "container", Reconciler: r, Failed: r.Failed, Log: log, Workers: workers + heavyCalls,
		BackOff:      controller.BackOff{Initial: 500 * time.Millisecond, Max: 5 * time.Minute},
		Metrics:      metrics,
		DesiredState: []controller.Source{store.Containers.Source(db, store.SpecChanged)},
		Signals: []controller.Source{r.EngineChanges(func() {}),
			consoles.Source, r.Resync(resync)},
		Awaited: []controller.Source{pulls.Source, permits.Source}}
	n := &node{store: db, consoles: consoles}
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { loop.Run(ctx) })
	parts.Go(func() { _ = pulls.Run(ctx) })
	parts.Go(func() { _ = consoles.Run(ctx) })
	parts.Go(func() { _ = hub.Run(ctx, db) })
	n.addr = serve(b, db, hub)
	n.stop = sync.OnceFunc(func() {
		cancel()
		parts.Wait()
		hub.Close()
		require.NoError(b, db.Close())
	})
	b.Cleanup(n.stop)
	return n
}

// serve serves the API until the benchmark ends, and returns its address.
func serve(b *testing.B, db *store.Store, hub *stream.Hub) string {
	b.Helper()
	c := v1.Defaults()
	c.Authorization.Token = token
	c.Reconcile.CreateWait = 0
	c.Complete()
	s := server.New(server.Deps{Store: db, Settings: fixed{c}, Hub: hub, Registerer: prometheus.NewRegistry(), WrongTokens: limit.NewRate(limit.WrongTokens()), Log: slog.New(slog.DiscardHandler), Version: "0.0.0",
		Node: func() v1.Node { return v1.Node{} }, Engine: func() server.EngineHealth { return server.EngineHealth{Reachable: true} }})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	ended := make(chan error, 1)
	go func() { ended <- s.Listen(ln) }()
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		require.NoError(b, s.Shutdown(ctx))
		require.NoError(b, <-ended)
	})
	return ln.Addr().String()
}

// processorTime returns the processor time that this process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
