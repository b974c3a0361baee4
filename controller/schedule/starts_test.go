package schedule

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
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

// slowEngine is an engine in memory whose starts take a second. It counts them.
type slowEngine struct {
	*fake.Engine

	mu                    sync.Mutex
	starting, most, begun int
}

// Start implements container.Engine.
func (e *slowEngine) Start(ctx context.Context, n runtime.Name) error {
	e.count(1)
	defer e.count(-1)
	time.Sleep(time.Second)
	return e.Engine.Start(ctx, n)
}

func (e *slowEngine) count(change int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.starting += change
	e.most, e.begun = max(e.most, e.starting), e.begun+max(change, 0)
}

// taken returns how many starts were begun, and how many of them at once, since the last call.
func (e *slowEngine) taken() (begun, most int) {
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	begun, most = e.begun, e.most
	e.begun, e.most = 0, 0
	return begun, most
}

// quiet is a container.Console: each run matches at once, and nothing prints.
type quiet struct{}

func (quiet) Follow(runtime.Target)                       {}
func (quiet) Matched(string, string, time.Time) bool      { return true }
func (quiet) OutputComplete(runtime.Target) bool          { return true }
func (quiet) Drain(context.Context, runtime.Target) error { return nil }
func (quiet) Forget(context.Context, string) error        { return nil }
func (quiet) Input(context.Context, string, []byte) error { return nil }

// unmounted is a container.Mounts: no container has mounts of the host.
type unmounted struct{}

func (unmounted) Pin(_ context.Context, _ runtime.Name, m []runtime.Mount) ([]runtime.Mount, func(), error) {
	return m, func() {}, nil
}

const permits = 4

// containers runs the loop of containers on an engine; stop ends it.
func (w *world) containers(e *slowEngine) (stop func()) {
	log, metrics := slog.New(slog.DiscardHandler), controller.NewMetrics(prometheus.NewRegistry())
	r := &container.Reconciler{Metrics: metrics, Store: w.store, Engine: e, Console: quiet{}, Log: log, Mounts: unmounted{},
		Pulls: container.NewPuller(e, 2, log), Preparations: container.NewPreparations(log), Semaphore: container.NewSemaphore(permits),
		Auth: func(string, string) runtime.Auth { return runtime.Auth{} },
		Options: container.Options{OrphanGrace: time.Minute, BootID: "boot", Now: w.now,
			Crash: container.CrashBackOff{BackOff: controller.BackOff{Initial: 10 * time.Second, Max: 5 * time.Minute}, ResetAfter: 10 * time.Minute}},
		Volumes: container.HostVolumes{
			Mount:     func(id string) runtime.Mount { return runtime.Mount{Source: "/volumes/" + id} },
			Own:       func(context.Context, string, container.Accounts) (string, error) { return "", nil },
			Configure: func(context.Context, string, []v1.ConfigFile, map[string]string) []error { return nil },
		}}
	loop := &controller.Loop{Name: "container", Reconciler: r, Failed: r.Failed, Workers: 8, Log: log, Metrics: metrics,
		BackOff:      controller.BackOff{Initial: 500 * time.Millisecond, Max: 5 * time.Minute},
		DesiredState: []controller.Source{store.Containers.Source(w.store, store.SpecChanged)},
		Signals:      []controller.Source{r.EngineChanges(func() {}), container.Volumes(w.store), r.Resync(time.Hour)},
		Awaited:      []controller.Source{r.Pulls.Source, r.Preparations.Source, r.Semaphore.Source}}
	ctx, cancel := context.WithCancel(w.t.Context())
	var parts sync.WaitGroup
	parts.Go(func() { loop.Run(ctx) })
	parts.Go(func() { r.Pulls.Run(ctx) })
	parts.Go(func() { r.Preparations.Run(ctx) })
	return func() { cancel(); parts.Wait() }
}

// TestManyRestarts: the schedules of 1,000 containers restart them at the same minute. Each is restarted once, and the engine starts
// as many at once as it has permits.
func TestManyRestarts(t *testing.T) {
	const many = 1000
	synctest.Test(t, func(t *testing.T) {
		w, e := newWorld(t), &slowEngine{Engine: fake.New(nil)}
		e.Outside.AddImage("i")
		w.update(func(tx *store.Tx) error { return store.Containers.Delete(tx, "mc") })
		w.update(func(tx *store.Tx) error {
			for i := range many {
				err := store.Containers.Create(tx, fmt.Sprintf("c%d", i), v1.ContainerSpec{Image: "i", VolumeID: "v", Power: v1.PowerOn, RunGeneration: 1,
					InstallGeneration: 1, RestartPolicy: v1.RestartPolicy{Mode: v1.RestartOnFailure}})
				if err != nil {
					return err
				}
			}
			return nil
		})
		defer w.run()()
		defer w.containers(e)()
		running := func() (n int) {
			for _, c := range store.Containers.List(w.store.Read()) {
				if c.Status.Phase == v1.Running && c.Status.ObservedRun == c.Spec.RunGeneration {
					n++
				}
			}
			return n
		}
		time.Sleep(many / permits * 2 * time.Second)
		require.Equal(t, many, running())
		e.taken()

		for i := range many {
			w.putOf(fmt.Sprintf("c%d", i), "nightly", v1.ScheduleSpec{Cron: "20 0 * * *", Steps: []v1.ScheduleStep{{Power: "restart"},
				{WaitFor: v1.Running, Timeout: v1.Duration(time.Hour)}}})
		}
		time.Sleep(20 * time.Minute)
		begun, most := e.taken()
		require.Equal(t, many, begun)
		require.Equal(t, permits, most)
		require.Equal(t, many, running())
		for _, s := range store.Schedules.List(w.store.Read()) {
			require.Equal(t, v1.RunCompleted, s.Status.LastRun.State, s.Status.LastRun.Message)
		}
	})
}
