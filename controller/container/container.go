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

// CrashBackOff is how long a run that keeps ending by itself waits for the next.
type CrashBackOff struct {
	Initial    time.Duration // after the first crash; doubles
	Max        time.Duration
	ResetAfter time.Duration // a run this long makes the next crash the first
}

// Reconciler drives one container at a time, a step a call.
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
	BootID    string                             // of the host
	Volume    func(volumeID string) (dir string) // where a volume is
	Auth      func(registry string) runtime.Auth // credentials of docker.registries
	Mounts    Mounts
	Metrics   *controller.Metrics
	Log       *slog.Logger
}

// The ways in which a step ends well.
var (
	settled = controller.Result{}
	requeue = controller.Result{Requeue: true}
	queued  = controller.Result{Waiting: true} // for a permit
)

// waitFor is the result of a step that waits for what another has in hand, and
// observes again after d.
func waitFor(d time.Duration) controller.Result {
	return controller.Result{Waiting: true, RequeueAfter: max(d, time.Millisecond)}
}

func requeueAfter(d time.Duration) controller.Result {
	return controller.Result{RequeueAfter: max(d, time.Millisecond)}
}

// Reconcile takes one step for the container with this internal_id, or two: what
// was made is started.
func (r *Reconciler) Reconcile(ctx context.Context, id string) (controller.Result, error) {
	defer r.Semaphore.handOver(id)
	s, next, err := r.next(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		r.Timers.forget(id)
		return r.Orphans.observe(ctx, r, id)
	}
	r.Orphans.forget(id)
	if err != nil {
		return settled, err
	}
	return s.takeWithPermit(ctx, next)
}

// next looks at a container and plans its next step.
func (r *Reconciler) next(ctx context.Context, id string) (step, Step, error) {
	c, space, err := r.load(id)
	if err != nil {
		return step{}, Step{}, err
	}
	o, err := r.observe(ctx, c)
	if err != nil {
		return step{}, Step{}, err
	}
	o.OverLimit, o.Shed = r.pressure(c, o, space)
	return step{Reconciler: r, c: c, o: o}, Plan(c, o), nil
}

// load reads a container, and what its volume occupied when it was last measured.
func (r *Reconciler) load(id string) (c v1.Container, s space, err error) {
	err = r.Store.View(func(tx *store.Tx) (err error) {
		if c, err = store.Containers.Get(tx, id); err != nil {
			return err
		}
		v, err := store.Volumes.Get(tx, c.Spec.VolumeID)
		if errors.Is(err, store.ErrNotFound) {
			return nil // its directory is another matter, and the engine's to refuse
		}
		s = space{diskLimit(c.Spec, v.Spec), v.Status.Usage()}
		return err
	})
	return c, s, err
}

// observe looks at the host. It asks only what Plan needs: an idle container
// costs one inspect, and what was never noted as begun is not looked for.
func (r *Reconciler) observe(ctx context.Context, c v1.Container) (o Observed, err error) {
	o = Observed{Now: r.Now(), BootID: r.BootID}
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
	r.observeTimers(c, &o)
	r.listen(c, &o)
	return o, nil
}

// imageRecorded says whether the images of the installation under way were seen. If
// one has gone since, making a container tells.
func imageRecorded(c v1.Container) bool {
	return c.Status.StartedInstall == c.Spec.InstallGeneration && v1.FindCondition(c.Status.Conditions, v1.ImageAvailable).Status == v1.True
}

// missing is the first image that an installation needs and the host has not.
func (r *Reconciler) missing(ctx context.Context, s v1.ContainerSpec) (string, error) {
	images := []string{s.Image}
	if s.InstallScript != "" && installImage(s) != s.Image {
		images = append(images, installImage(s))
	}
	for _, image := range images {
		if has, err := r.Engine.HasImage(ctx, image); err != nil || !has {
			return image, err
		}
	}
	return "", nil
}

// listen sees that the console of what runs is read, and to its end.
func (r *Reconciler) listen(c v1.Container, o *Observed) {
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
		if _, err := r.Store.History.Witness(s.Incarnation, s.Revision); err != nil { // the next look tries again
			r.Log.Warn("the new epoch of the store could not be stored", "container", n.ID, "err", err)
		}
	}
	return s, err
}

// made adds to a spec which incarnation of the store its revision is of.
func (r *Reconciler) made(s runtime.Spec) runtime.Spec {
	s.Incarnation = r.Store.History.Incarnation()
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
