package schedule

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

// world is a store with a running container, and the loop of this package.
type world struct {
	t       *testing.T
	store   *store.Store
	clock   atomic.Int64 // by which the host's clock is ahead, a time.Duration
	metrics *prometheus.Registry

	mu      sync.Mutex
	sent    []string
	taken   [][2]int                                     // the steps that were recorded when a request or a line was about to be carried out, and when it was
	send    func(ctx context.Context, line string) error // nil: it succeeds
	sending int
	most    int // lines that were sent at once
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t}
	s, err := store.Open("", store.Options{Now: w.now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	w.store = s
	w.update(func(tx *store.Tx) error { return store.Volumes.Create(tx, "v", v1.VolumeSpec{}) })
	w.container("mc")
	return w
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.clock.Load())) }

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
	log := slog.New(slog.DiscardHandler)
	w.metrics = prometheus.NewRegistry()
	lines := NewLines(log)
	loop := New(Options{Store: w.store, Began: w.now(), Lines: lines, Resync: time.Minute, Log: log,
		BackOff: controller.BackOff{Initial: time.Second, Max: time.Minute}, Loops: controller.NewMetrics(w.metrics), Metrics: Register(w.metrics, w.store),
		Power: func(s store.Writer, id, verb string) error {
			return w.watch(func() error { return intent.Power(s, id, intent.Verb(verb)) })
		},
		Backup: func(s store.Writer, id string, spec v1.BackupSpec) error {
			return w.watch(func() error { return intent.CreateBackup(s, id, spec, v1.Defaults().Backups) })
		},
		Send: w.sendLine})
	ctx, cancel := context.WithCancel(w.t.Context())
	var parts sync.WaitGroup
	parts.Go(func() { _ = lines.Run(ctx) })
	parts.Go(func() { loop.Run(ctx) })
	synctest.Wait()
	return func() { cancel(); parts.Wait() }
}

func (w *world) sendLine(ctx context.Context, _, line string) error {
	w.mu.Lock()
	w.sending++
	w.most = max(w.most, w.sending)
	send := w.send
	w.sent = append(w.sent, line)
	w.mu.Unlock()
	err := w.watch(func() error {
		if send != nil {
			return send(ctx, line)
		}
		return nil
	})
	w.mu.Lock()
	w.sending--
	w.mu.Unlock()
	return err
}

// watch keeps the step of the schedule x of mc that is recorded before and after do.
func (w *world) watch(do func() error) error {
	step := func() int {
		s, err := store.Schedules.Get(w.store.Read(), v1.ScheduleID("mc", "x"))
		if err != nil || s.Status.LastRun == nil {
			return 0
		}
		return s.Status.LastRun.Step
	}
	before := step()
	err := do()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken = append(w.taken, [2]int{before, step()})
	return err
}

func (w *world) lines() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sent)
}

func (w *world) update(fn func(*store.Tx) error) {
	w.t.Helper()
	require.NoError(w.t, w.store.Update(fn))
	synctest.Wait()
}

// container makes a container that is running.
func (w *world) container(id string) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error {
		return store.Containers.Create(tx, id, v1.ContainerSpec{VolumeID: "v", Power: v1.PowerOn, InstallGeneration: 1, RunGeneration: 1})
	})
	w.phase(id, v1.Running)
}

// phase sets the state of a container, which has carried out what was requested.
func (w *world) phase(id string, to v1.Phase) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error {
		c, err := store.Containers.Get(tx, id)
		require.NoError(w.t, err)
		return store.Containers.SetStatus(tx, id, func(s *v1.ContainerStatus) {
			s.Phase, s.ObservedRun, s.ObservedInstall = to, c.Spec.RunGeneration, c.Spec.InstallGeneration
			switch to {
			case v1.Running:
				s.Totals.Runs++
			case v1.Exit:
				s.Totals.Exits++
			}
		})
	})
}

// put sets a schedule of mc as the API does.
func (w *world) put(name string, spec v1.ScheduleSpec) {
	w.t.Helper()
	w.putOf("mc", name, spec)
}

func (w *world) putOf(container, name string, spec v1.ScheduleSpec) {
	w.t.Helper()
	var f v1.FieldErrors
	intent.CheckSchedule(&f, intent.SchedulePolicy{Backups: v1.Defaults().Backups}, container, name, &spec)
	require.NoError(w.t, f.Err())
	require.NoError(w.t, intent.PutSchedule(w.store, spec))
	synctest.Wait()
}

func (w *world) status(name string) v1.ScheduleStatus {
	w.t.Helper()
	synctest.Wait()
	o, err := store.Schedules.Get(w.store.Read(), v1.ScheduleID("mc", name))
	require.NoError(w.t, err)
	return o.Status
}

// last requires the state of the last run of a schedule, and returns the run.
func (w *world) last(name string, state v1.RunState) v1.ScheduleRun {
	w.t.Helper()
	run := w.status(name).LastRun
	require.NotNil(w.t, run)
	require.Equal(w.t, state, run.State, run.Message)
	return *run
}

func (w *world) spec() v1.ContainerSpec {
	w.t.Helper()
	c, err := store.Containers.Get(w.store.Read(), "mc")
	require.NoError(w.t, err)
	return c.Spec
}

// events returns the transitions of runs.
func (w *world) events() (list []string) {
	w.t.Helper()
	synctest.Wait()
	all, err := store.ReadEvents(w.store.Read(), 0, 10_000)
	require.NoError(w.t, err)
	for _, e := range all {
		if e.Event == v1.EventSchedule {
			list = append(list, e.Schedule+" "+e.Data)
		}
	}
	return list
}

func (w *world) backups() []v1.Backup {
	w.t.Helper()
	synctest.Wait()
	return store.Backups.ListBy(w.store.Read(), "v")
}

// end ends the backups that have not ended.
func (w *world) end(state v1.JobState) {
	w.t.Helper()
	for _, b := range w.backups() {
		if !b.Status.State.Finished() {
			w.update(func(tx *store.Tx) error {
				return store.Backups.SetStatus(tx, b.Meta.ID, func(s *v1.BackupStatus) { s.State, s.Message = state, "of the test" })
			})
		}
	}
}

func say(line string) v1.ScheduleStep { return v1.ScheduleStep{Command: line} }
func wait(d time.Duration) v1.ScheduleStep {
	return v1.ScheduleStep{Wait: v1.Duration(d)}
}
func daily(steps ...v1.ScheduleStep) v1.ScheduleSpec {
	return v1.ScheduleSpec{Cron: "0 4 * * *", Steps: steps}
}
