package container

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	v1 "berth/api/v1"
	"berth/runtime"
	"berth/store"
)

// observe loads a container and observes it on the host. It queries only what Plan needs: an
// idle container costs one inspect, and a container whose creation was never recorded is not
// inspected.
func (r *Reconciler) observe(ctx context.Context, id string) (t *task, err error) {
	t = &task{Reconciler: r, o: Observed{BootID: r.BootID, Warn: r.Warn}}
	volume, err := t.load(id)
	if err != nil {
		return nil, err
	}
	c, o := t.c, &t.o
	installing := t.installs()
	if c.Meta.Deleted || c.Status.ObservedInstall > 0 || c.Status.ServerVolume != "" {
		if o.Server, err = t.reach(r.inspect(ctx, serverName(id))); err != nil {
			return nil, err
		}
	}
	if c.Meta.Deleted && !exists(o.Server) || c.Status.InstallID != "" || installing && c.Status.InstallVolume != "" {
		if o.Install, err = t.reach(r.inspect(ctx, installerName(id))); err != nil {
			return nil, err
		}
	}
	if installing && !imageRecorded(c) && !exists(o.Install) && !c.Meta.Deleted {
		if o.Missing, err = r.missing(ctx, c.Spec); err != nil {
			return nil, err
		}
	}
	if c.Spec.NamesGateway() && !c.Meta.Deleted {
		if o.Gateway, err = r.Engine.Gateway(ctx); err != nil {
			t.recordHost(err)
			return nil, err
		}
	}
	t.observeEngine(ctx)
	t.observePlatform(ctx)
	o.Now = r.Now() // after the calls of the engine: the timers are read at the same time
	_, o.Prepared = t.preparation()
	t.observeTimers()
	t.followConsole()
	t.observePressure(volume)
	return t, nil
}

// load reads the container, its volume, and whether the volume is being restored or has lost
// its directory. A volume without a record is zero: the engine refuses its directory.
func (t *task) load(id string) (volume v1.Volume, err error) {
	tx := t.Store.Read()
	if t.c, err = store.Containers.Get(tx, id); err != nil {
		return volume, err
	}
	volume, err = store.Volumes.Get(tx, t.c.Spec.VolumeID)
	if errors.Is(err, store.ErrNotFound) {
		return volume, nil
	}
	mounted := t.c.Status.ServerVolume // another than that of the spec while its change waits for a start
	t.o.Restoring = store.Restoring(tx, t.c.Spec.VolumeID) != "" || mounted != "" && store.Restoring(tx, mounted) != ""
	t.o.VolumeMissing = lostVolume(t.c, volume.Status)
	return volume, err
}

// reach observes whether the machine of a container answers. One that does not is no error.
func (t *task) reach(s runtime.State, err error) (runtime.State, error) {
	if errors.Is(err, runtime.ErrLost) {
		t.o.Unreachable, err = v1.ClippedText(causeOf(err), maxCause)+
			": the container may run on, and is started elsewhere once its machine is declared to be off", nil
	}
	return s, err
}

func (r *Reconciler) inspect(ctx context.Context, n runtime.Name) (runtime.State, error) {
	s, err := r.Engine.Inspect(ctx, n)
	if errors.Is(err, runtime.ErrNotFound) {
		return runtime.State{}, nil
	}
	if err == nil || errors.Is(err, runtime.ErrLost) {
		if _, err := r.Store.Incarnations.Witness(s.Incarnation, s.Revision); err != nil { // the next inspect tries again
			r.Log.Warn("the new epoch of the store could not be stored", "container", n.ID, "err", err)
		}
	}
	return s, err
}

// imageRecorded reports whether the images of the current installation were
// observed on the host. If one was removed since, creating a container fails.
func imageRecorded(c v1.Container) bool {
	return c.Status.StartedInstall == c.Spec.InstallGeneration && v1.FindCondition(c.Status.Conditions, v1.ImageAvailable).Status == v1.True
}

// missing returns the first image that an installation needs and that is not on
// the host.
func (r *Reconciler) missing(ctx context.Context, s v1.ContainerSpec) (string, error) {
	images := []string{s.Image}
	if s.Installs() && installImage(s) != s.Image {
		images = append(images, installImage(s))
	}
	for _, image := range images {
		if id, err := r.Engine.ImageID(ctx, image); err != nil || id == "" {
			return image, err
		}
	}
	return "", nil
}

// observeEngine queries the engine's instance if the cause of an exit determines
// the next step. Otherwise the instance that answered last is enough.
func (t *task) observeEngine(ctx context.Context) {
	t.o.Engine = t.instances.last()
	if !causeMatters(t.c, t.o) {
		return
	}
	instance, err := t.instances.query(ctx, t.Engine)
	if err != nil {
		t.Log.Info("an exit is not recorded yet: the engine accepts no new connection", "container", t.c.Meta.ID, "err", err)
		return
	}
	t.o.Engine, t.o.Confirmed = instance, true
}

// atOnce is how long a program runs that fails at once.
const atOnce = 10 * time.Second

// observePlatform observes whether the image of a run that failed at once is for another
// machine. An error hides that only.
func (t *task) observePlatform(ctx context.Context) {
	run, unrecorded := t.o.Server, t.c.Status.Phase.Active()
	if t.installs() {
		run, unrecorded = t.o.Install, t.c.Status.Phase == v1.Installing
	}
	if !unrecorded || run.Running || run.StartedAt.IsZero() || run.FinishedAt.Sub(run.StartedAt) > atOnce {
		return
	}
	if run.ExitCode == 0 || run.ExitCode == sigkillExitCode { // it did run: to ask would make a kill some 15 ms longer
		return
	}
	t.o.Foreign, _ = t.Engine.Foreign(ctx, run.ImageID)
}

// otherMachine completes a text about an exit.
func (o Observed) otherMachine(text string) string {
	if o.Foreign == "" {
		return text
	}
	return text + ": its image is for " + o.Foreign
}

// followConsole keeps the consoles of running containers followed, and observes
// whether the start pattern matched and whether the output was read completely.
func (t *task) followConsole() {
	o := &t.o
	if o.Install.Running {
		t.Console.Follow(t.installerTarget())
	}
	if o.Server.Running {
		t.Console.Follow(t.serverTarget())
		o.Matched = t.Console.Matched(t.c.Meta.ID, o.Server.ContainerID, o.Server.StartedAt)
	}
	switch phase := t.c.Status.Phase; {
	case phase.Active() && exists(o.Server) && !o.Server.Running:
		o.OutputComplete = t.Console.OutputComplete(t.serverTarget())
	case phase == v1.Installing && exists(o.Install) && !o.Install.Running:
		o.OutputComplete = t.Console.OutputComplete(t.installerTarget())
	}
}

func (t *task) serverTarget() runtime.Target {
	s := t.o.Server
	return runtime.Target{ID: t.c.Meta.ID, Role: runtime.Server, ContainerID: s.ContainerID, StartedAt: s.StartedAt,
		Ended: !s.Running, TTY: s.TTY, OwnLog: s.OwnLog, Pattern: t.c.Spec.StartPattern, From: t.c.Status.StartRecordedAt}
}

func (t *task) installerTarget() runtime.Target {
	s := t.o.Install
	return runtime.Target{ID: t.c.Meta.ID, Role: runtime.Install, ContainerID: s.ContainerID, StartedAt: s.StartedAt,
		Ended: !s.Running, TTY: s.TTY, OwnLog: s.OwnLog}
}

// timers measure the starts, stops, installations and disk pressure of containers by the
// monotonic clock of this process, so that a change of the host's clock neither
// shortens nor extends a grace period. After a restart of berth they begin at 0:
// it is unknown how much of a stored time was a jump of the clock.
type timers struct {
	mu    sync.Mutex
	began map[timerKey]timer
}

type timerKey struct {
	id   string // internal_id
	kind timerKind
}

// timerKind is the kind of a timer. A container has at most one timer of each.
type timerKind uint8

const (
	stopTimer     timerKind = iota // since the container was asked to exit
	startTimer                     // since the run was first observed starting
	installTimer                   // since the installer was first observed running
	pressureTimer                  // since the volume was first observed over its limit
	orphanTimer                    // since the container was first observed without a record
)

type timer struct {
	of time.Time // identifies the start, stop, installation or disk pressure
	at time.Time // begin of the measurement
}

// since returns the time since the timer that of identifies began; 0 if it does not run.
// Begins starts it if it does not run.
func (t *timers) since(id string, kind timerKind, of time.Time, begins bool) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := timerKey{id, kind}
	if old, runs := t.began[key]; runs && old.of.Equal(of) {
		return time.Since(old.at)
	}
	if begins {
		if t.began == nil {
			t.began = map[timerKey]timer{}
		}
		t.began[key] = timer{of, time.Now()}
	}
	return 0
}

// forget removes all timers of a container that is gone.
func (t *timers) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.began, func(key timerKey, _ timer) bool { return key.id == id })
}

// observeTimers begins the timers of a container, and observes the elapsed times.
func (t *task) observeTimers() {
	id, st, o := t.c.Meta.ID, t.c.Status, &t.o
	if st.Phase == v1.Stopping {
		o.StopFor = t.timers.since(id, stopTimer, st.StopRecordedAt, st.StopSent)
	}
	if st.Phase == v1.Starting && o.Server.Running {
		o.StartFor = t.timers.since(id, startTimer, o.Server.StartedAt, true)
	}
	o.InstallFor = t.timers.since(id, installTimer, o.Install.StartedAt, o.Install.Running)
	if underDiskPressure(t.c) {
		o.PressureFor = t.timers.since(id, pressureTimer, v1.FindCondition(st.Conditions, v1.DiskPressure).Since, true)
	}
}
