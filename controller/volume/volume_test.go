package volume_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/controller/volume"
	"berth/store"
)

// disk is Directories in memory.
type disk struct {
	mu         sync.Mutex
	state      map[string]error // nil: usable; absent: never made
	made       int
	limits     map[string]int64
	hard       map[string]int64 // the limits, as SetHardLimit found them
	hardErr    error
	used       int64
	unmeasured string
	slow       int // how often a removal runs out of time
	removedIDs []string
	by         string // the container that mounts each volume
	away       error  // the error of an unreachable engine
	checks     int
}

func (d *disk) mounted(context.Context, string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.by, d.away
}

func (d *disk) Ensure(id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.made++
	if err, there := d.state[id]; there {
		return err
	}
	d.state[id] = nil
	return nil
}

func (d *disk) SetHardLimit(id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hardErr == nil {
		d.hard[id] = d.limits[id]
	}
	return d.hardErr
}

func (d *disk) Check(id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.checks++
	return d.state[id]
}

func (d *disk) Remove(ctx context.Context, id string) error {
	d.mu.Lock()
	slow := d.slow > 0
	d.slow--
	d.mu.Unlock()
	if slow {
		<-ctx.Done()
		return ctx.Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removedIDs = append(d.removedIDs, id)
	return nil
}

func (d *disk) SetLimit(id string, limit int64, _ v1.Usage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.limits[id] = limit
}

func (d *disk) Limit(id string) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.limits[id]
}

func (d *disk) Present() map[string]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.checks++
	present := map[string]bool{}
	for id, err := range d.state {
		present[id] = !errors.Is(err, v1.ErrDirectoryMissing) && !errors.Is(err, v1.ErrNotADirectory)
	}
	return present
}

func (d *disk) Used(string) v1.Usage {
	d.mu.Lock()
	defer d.mu.Unlock()
	return v1.Usage{Bytes: d.used}
}

func (d *disk) Unmeasured(string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unmeasured
}

func (d *disk) Scan(context.Context, string) (v1.Usage, error) { return d.Used(""), nil }

func (d *disk) removed() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.removedIDs
}

func (d *disk) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

type world struct {
	t      *testing.T
	store  *store.Store
	disk   *disk
	claims volume.Claims // nil: no volume has one
	log    *bytes.Buffer // read it only while the loop waits

	reconciler *volume.Reconciler
}

func live(t *testing.T, test func(w *world)) {
	t.Helper()
	liveWith(t, nil, test)
}

func liveWith(t *testing.T, claims volume.Claims, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		w := &world{t: t, store: s, disk: &disk{state: map[string]error{}, limits: map[string]int64{}, hard: map[string]int64{}},
			claims: claims}
		w.log = new(bytes.Buffer)
		defer w.run()()
		test(w)
	})
}

// run starts the part of the daemon that this package is; stop ends it.
func (w *world) run() (stop func()) {
	log := slog.New(slog.NewTextHandler(w.log, nil))
	w.reconciler = &volume.Reconciler{Store: w.store, Directories: w.disk, Log: log, Mounted: w.disk.mounted}
	if w.claims != nil {
		w.reconciler.Claims, w.reconciler.Class, w.reconciler.ClaimSize = w.claims, "fast", 10<<30
	}
	scanner := &volume.Scanner{Store: w.store, Directories: w.disk, Log: log}
	l := &controller.Loop{Name: "volume", Workers: 2, Log: log, Metrics: controller.NewMetrics(prometheus.NewRegistry()), BackOff: controller.BackOff{Initial: time.Second, Max: time.Minute},
		Reconciler:   w.reconciler,
		DesiredState: []controller.Source{store.Volumes.Source(w.store, store.SpecChanged)},
		Signals:      []controller.Source{volume.Users(w.store), scanner.Source(), w.reconciler.Resync(time.Minute)}}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.Run(ctx) }()
	return func() { cancel(); <-done }
}

func (w *world) update(fn func(*store.Tx) error) {
	w.t.Helper()
	require.NoError(w.t, w.store.Update(fn))
	synctest.Wait()
}

func (w *world) create(limit int64) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error { return store.Volumes.Create(tx, "v", v1.VolumeSpec{SizeLimit: limit}) })
}

func (w *world) get() (v1.Volume, error) {
	synctest.Wait()
	return store.Volumes.Get(w.store.Read(), "v")
}

func (w *world) reason() string {
	w.t.Helper()
	v, err := w.get()
	require.NoError(w.t, err)
	return v1.FindCondition(v.Status.Conditions, v1.DirectoryReady).Reason
}

// ready returns the value of berth_volume_ready of the only volume.
func (w *world) ready() float64 {
	w.t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(volume.NewCollector(w.store))
	families, err := registry.Gather()
	require.NoError(w.t, err)
	for _, f := range families {
		if f.GetName() == "berth_volume_ready" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	w.t.Fatal("there is no berth_volume_ready")
	return 0
}

// TestUnmeasuredVolume: the condition and the log name why a volume is not measured whole.
func TestUnmeasuredVolume(t *testing.T) {
	live(t, func(w *world) {
		w.create(0)
		measured := func() v1.Condition {
			time.Sleep(2 * time.Minute)
			v, err := w.get()
			require.NoError(t, err)
			return v1.FindCondition(v.Status.Conditions, v1.UsageMeasured)
		}
		require.Empty(t, measured().Status)
		for reason, cause := range map[string]string{v1.ReasonTooDeep: "nested", v1.ReasonUnreadable: "may not read", v1.ReasonTooManyNames: "names"} {
			w.disk.set(func() { w.disk.unmeasured = reason })
			c := measured()
			require.Equal(t, []string{v1.False, reason}, []string{c.Status, c.Reason})
			require.Contains(t, c.Message, cause)
			require.Equal(t, 1, strings.Count(w.log.String(), "volume=v reason="+reason), "it is logged once")
			w.disk.set(func() { w.disk.unmeasured = "" })
			require.Equal(t, v1.True, measured().Status)
		}
	})
}

func TestDirectoryIsCreatedOnce(t *testing.T) {
	live(t, func(w *world) {
		w.create(0)
		w.update(func(tx *store.Tx) error { return store.Containers.Create(tx, "mc", v1.ContainerSpec{VolumeID: "v"}) })
		require.Equal(t, "Ready", w.reason())
		for reason, err := range map[string]error{"DirectoryMissing": v1.ErrDirectoryMissing, "NotADirectory": v1.ErrNotADirectory} {
			w.disk.set(func() { w.disk.state["v"] = err })
			time.Sleep(2 * time.Minute)
			require.Equal(t, reason, w.reason())
			require.Equal(t, 1, strings.Count(w.log.String(), "volume=v reason="+reason+" container=mc"), "a change is logged once: %s", w.log)
			require.Equal(t, 0.0, w.ready())
			w.disk.set(func() { w.disk.state["v"] = nil })
			time.Sleep(2 * time.Minute)
			require.Equal(t, "Ready", w.reason())
			require.Equal(t, 1.0, w.ready())
		}
		w.disk.set(func() { require.Equal(t, 1, w.disk.made) })
	})
}

// TestMissingDirectoryIsLoggedPerStart: a daemon that starts logs a missing directory,
// although nothing has changed since.
func TestMissingDirectoryIsLoggedPerStart(t *testing.T) {
	live(t, func(w *world) {
		w.create(0)
		w.disk.set(func() { w.disk.state["v"] = v1.ErrDirectoryMissing })
		time.Sleep(2 * time.Minute)
		require.Equal(t, "DirectoryMissing", w.reason())
		for times := 1; times <= 2; times++ {
			require.Equal(t, times, strings.Count(w.log.String(), "reason=DirectoryMissing"), "%s", w.log)
			defer w.run()()
			time.Sleep(2 * time.Minute)
			synctest.Wait()
		}
	})
}

func TestTemporaryErrorIsReportedAndRetried(t *testing.T) {
	live(t, func(w *world) {
		w.disk.set(func() { w.disk.state["v"] = errors.New("read-only file system") })
		w.create(0)
		require.Equal(t, "Failed", w.reason())
		w.disk.set(func() { w.disk.state["v"] = nil })
		time.Sleep(2 * time.Minute)
		require.Equal(t, "Ready", w.reason())

		w.disk.set(func() { w.disk.hardErr = errors.New("quotactl") })
		w.update(func(tx *store.Tx) error {
			return store.Volumes.SetSpec(tx, "v", func(s *v1.VolumeSpec) error { s.SizeLimit = 1; return nil })
		})
		require.Equal(t, "Failed", w.reason(), "without its hard limit")
		w.disk.set(func() { w.disk.hardErr = nil })
		time.Sleep(2 * time.Minute)
		require.Equal(t, "Ready", w.reason())
	})
}

func TestVolumeIsRemovedAfterContainers(t *testing.T) {
	live(t, func(w *world) {
		w.create(0)
		w.update(func(tx *store.Tx) error { return store.Containers.Create(tx, "mc", v1.ContainerSpec{VolumeID: "v"}) })
		w.update(func(tx *store.Tx) error { return store.Volumes.Delete(tx, "v") })
		time.Sleep(time.Minute)
		require.Empty(t, w.disk.removed(), "a container uses it")

		w.disk.set(func() { w.disk.slow = 3 })
		w.update(func(tx *store.Tx) error { return store.Containers.Purge(tx, "mc") })
		time.Sleep(time.Minute)
		require.Equal(t, []string{"v"}, w.disk.removed())
		require.Zero(t, w.reconciler.Reported(), "nothing of it stays in memory")
		_, err := w.get()
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

func TestSmallestLimitApplies(t *testing.T) {
	live(t, func(w *world) {
		w.create(1000)
		limit := func() int64 {
			w.disk.mu.Lock()
			defer w.disk.mu.Unlock()
			require.Equal(t, w.disk.limits["v"], w.disk.hard["v"], "the hard limit follows")
			return w.disk.limits["v"]
		}
		require.EqualValues(t, 1000, limit())
		disk := func(bytes int64) {
			w.update(func(tx *store.Tx) error {
				return store.Containers.SetSpec(tx, "mc", func(s *v1.ContainerSpec) error { s.Limits.Disk = bytes; return nil })
			})
		}
		w.update(func(tx *store.Tx) error { return store.Containers.Create(tx, "mc", v1.ContainerSpec{VolumeID: "v"}) })
		disk(500)
		require.EqualValues(t, 500, limit())
		disk(2000)
		require.EqualValues(t, 1000, limit())

		w.update(func(tx *store.Tx) error {
			return store.Volumes.SetSpec(tx, "v", func(s *v1.VolumeSpec) error { s.SizeLimit = 0; return nil })
		})
		require.EqualValues(t, 2000, limit(), "the limit of the container, if the volume has none")
		disk(0)
		require.Zero(t, limit())
	})
}

func TestWritesOfContainersAreMeasured(t *testing.T) {
	live(t, func(w *world) {
		w.create(0)
		w.disk.set(func() { w.disk.used = 4096 })
		time.Sleep(6 * time.Minute)
		v, err := w.get()
		require.NoError(t, err)
		require.EqualValues(t, 4096, v.Status.Size)
	})
}

// TestMountedDirectoryIsNotRemoved: a container in the engine keeps the directory even
// without a record, and an engine that does not answer keeps it too.
func TestMountedDirectoryIsNotRemoved(t *testing.T) {
	live(t, func(w *world) {
		w.disk.set(func() { w.disk.by, w.disk.away = "", errors.New("engine is unavailable") })
		w.update(func(tx *store.Tx) error { return store.Volumes.Create(tx, "v", v1.VolumeSpec{}) })
		w.update(func(tx *store.Tx) error { return store.Volumes.Delete(tx, "v") })
		time.Sleep(10 * time.Minute)
		require.Empty(t, w.disk.removed())
		w.disk.set(func() { w.disk.by, w.disk.away = "orphan", nil })
		time.Sleep(10 * time.Minute)
		require.Empty(t, w.disk.removed())
		w.disk.set(func() { w.disk.by = "" })
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"v"}, w.disk.removed())
	})
}
