package container

import (
	"context"
	"errors"
	"log/slog"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/runtime"
	"berth/store"
)

// CrashBackOff is the backoff of a container whose runs keep exiting.
type CrashBackOff struct {
	Initial    time.Duration // after the first crash; doubles
	Max        time.Duration
	ResetAfter time.Duration // after a run of this duration crashes are counted from 0
}

// Reconciler drives containers toward their specs, one step of one container per
// call.
type Reconciler struct {
	Store     *store.Store
	Engine    Engine
	Console   Console
	Pulls     *Puller
	Orphans   *Orphans
	Semaphore *Semaphore
	Outage    *Outage
	Timers    *Timers
	Now       func() time.Time // the host's clock
	Roots     *Roots
	Crash     CrashBackOff
	Warn      Warnings
	BootID    string                                                                                                    // of the host
	Volume    func(volumeID string) (dir string)                                                                        // the directory of a volume on the host
	Auth      func(registry string) runtime.Auth                                                                        // credentials of docker.registries
	Configure func(ctx context.Context, volumeID string, files []v1.ConfigFile, env map[string]string) ([]error, error) // sets values of configuration files
	Mounts    Mounts
	Metrics   *controller.Metrics
	Log       *slog.Logger
}

// waitFor returns the result of a step that waits for a resource which another
// container or the puller holds. The container is observed again after d.
func waitFor(d time.Duration) controller.Result {
	return controller.Result{Waiting: true, RequeueAfter: max(d, time.Millisecond)}
}

// requeueAfter returns the result of a step after which the container is observed
// again after d.
func requeueAfter(d time.Duration) controller.Result {
	return controller.Result{RequeueAfter: max(d, time.Millisecond)}
}

// Reconcile takes one step for the container with this internal_id, or two: a
// container that was just created is started with the same permit.
func (r *Reconciler) Reconcile(ctx context.Context, id string) (res controller.Result, err error) {
	defer func() {
		if !res.Waiting {
			r.Semaphore.leave(id)
		}
	}()
	s, next, err := r.next(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		r.Timers.forget(id)
		return r.Orphans.observe(ctx, r, id)
	}
	r.Orphans.forget(id)
	if err != nil {
		return controller.Result{}, err
	}
	return s.executeWithPermit(ctx, next)
}

// next observes a container and plans its next step.
func (r *Reconciler) next(ctx context.Context, id string) (execution, Step, error) {
	c, volume, err := r.load(id)
	if err != nil {
		return execution{}, Step{}, err
	}
	o, err := r.observe(ctx, c)
	if err != nil {
		return execution{}, Step{}, err
	}
	r.measuredPressure(c, &o, volume)
	o.Restoring, o.VolumeMissing = volume.restoring, volume.missing
	return execution{r: r, c: c, o: o}, Plan(c, o), nil
}

// load reads a container, its disk limit, and what its volume was last observed to be.
func (r *Reconciler) load(id string) (c v1.Container, s space, err error) {
	err = r.Store.View(func(tx *store.Tx) (err error) {
		if c, err = store.Containers.Get(tx, id); err != nil {
			return err
		}
		v, err := store.Volumes.Get(tx, c.Spec.VolumeID)
		if errors.Is(err, store.ErrNotFound) {
			return nil // a missing directory is the engine's to refuse
		}
		s = space{diskLimit(c.Spec, v.Spec), v.Status.Usage(), store.Restoring(tx, c.Spec.VolumeID) != "", lostVolume(c, v.Status), unmeasured(v.Status)}
		return err
	})
	return c, s, err
}

// observe observes a container on the host. It queries only what Plan needs: an
// idle container costs one inspect, and a container whose creation was never
// recorded is not inspected.
func (r *Reconciler) observe(ctx context.Context, c v1.Container) (o Observed, err error) {
	o = Observed{BootID: r.BootID, Warn: r.Warn}
	installing := c.Status.ObservedInstall != c.Spec.InstallGeneration
	if c.Meta.Deleted || c.Status.ObservedInstall > 0 || c.Status.ServerVolume != "" {
		if o.Server, err = r.inspect(ctx, serverName(c.Meta.ID)); err != nil {
			return o, err
		}
	}
	if c.Meta.Deleted && !exists(o.Server) || c.Status.InstallID != "" || installing && c.Status.InstallVolume != "" {
		if o.Install, err = r.inspect(ctx, installerName(c.Meta.ID)); err != nil {
			return o, err
		}
	}
	if installing && !imageRecorded(c) && !exists(o.Install) && !c.Meta.Deleted {
		if o.Missing, err = r.missing(ctx, c.Spec); err != nil {
			return o, err
		}
	}
	r.observeEngine(ctx, c, &o)
	o.Now = r.Now() // after the calls of the engine: the timers are read at the same time
	r.observeTimers(c, &o)
	r.followConsole(c, &o)
	return o, nil
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
	if s.InstallScript != "" && installImage(s) != s.Image {
		images = append(images, installImage(s))
	}
	for _, image := range images {
		if id, err := r.Engine.ImageID(ctx, image); err != nil || id == "" {
			return image, err
		}
	}
	return "", nil
}

// followConsole keeps the consoles of running containers followed, and observes
// whether the start pattern matched and whether the output was read completely.
func (r *Reconciler) followConsole(c v1.Container, o *Observed) {
	if o.Install.Running {
		r.Console.Follow(installerTarget(c, o.Install))
	}
	if o.Server.Running {
		r.Console.Follow(serverTarget(c, o.Server))
		o.Matched = r.Console.Matched(c.Meta.ID, o.Server.ContainerID, o.Server.StartedAt)
	}
	switch phase := c.Status.Phase; {
	case phase.Active() && exists(o.Server) && !o.Server.Running:
		o.OutputComplete = r.Console.OutputComplete(serverTarget(c, o.Server))
	case phase == v1.Installing && exists(o.Install) && !o.Install.Running:
		o.OutputComplete = r.Console.OutputComplete(installerTarget(c, o.Install))
	}
}

func (r *Reconciler) inspect(ctx context.Context, n runtime.Name) (runtime.State, error) {
	s, err := r.Engine.Inspect(ctx, n)
	if errors.Is(err, runtime.ErrNotFound) {
		return runtime.State{}, nil
	}
	if err == nil {
		if _, err := r.Store.Incarnations.Witness(s.Incarnation, s.Revision); err != nil { // the next inspect tries again
			r.Log.Warn("the new epoch of the store could not be stored", "container", n.ID, "err", err)
		}
	}
	return s, err
}

// withIncarnation adds the incarnation of the store to a spec: its revision is
// counted within it.
func (r *Reconciler) withIncarnation(s runtime.Spec) runtime.Spec {
	s.Incarnation = r.Store.Incarnations.Incarnation()
	return s
}

func serverTarget(c v1.Container, s runtime.State) runtime.Target {
	return runtime.Target{ID: c.Meta.ID, Role: runtime.Server, ContainerID: s.ContainerID, StartedAt: s.StartedAt,
		Ended: !s.Running, TTY: s.TTY, Pattern: c.Spec.StartPattern, From: c.Status.StartRecordedAt}
}

func installerTarget(c v1.Container, s runtime.State) runtime.Target {
	return runtime.Target{ID: c.Meta.ID, Role: runtime.Install, ContainerID: s.ContainerID, StartedAt: s.StartedAt,
		Ended: !s.Running, TTY: s.TTY}
}
