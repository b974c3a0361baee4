package image

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/runtime"
	"berth/store"
)

// Engine is what this package needs of a container engine; see runtime/engine.go.
type Engine interface {
	ImageID(ctx context.Context, ref string) (string, error)
	Pull(ctx context.Context, ref string, a runtime.Auth, progress func(runtime.Progress)) error
	RemoveImage(ctx context.Context, id, ref string) error
}

// Puller pulls images, and records those that were not on the host.
type Puller struct {
	Engine Engine
	Store  *store.Store
	Space  func() error // returns runtime.ErrNoSpace if the engine's disk has too little
}

// Pull pulls an image unless there is too little space.
func (p *Puller) Pull(ctx context.Context, ref string, a runtime.Auth, progress func(runtime.Progress)) error {
	if err := p.Space(); err != nil {
		return err
	}
	before, err := p.Engine.ImageID(ctx, ref)
	if err == nil {
		err = p.Engine.Pull(ctx, ref, a, progress)
	}
	if err != nil {
		return err
	}
	id, err := p.Engine.ImageID(ctx, ref)
	if err != nil || id == "" || id == before {
		return err
	}
	return p.Store.Update(func(tx *store.Tx) error {
		if _, err := store.Images.Get(tx, id); !errors.Is(err, store.ErrNotFound) {
			return err
		}
		return store.Images.Create(tx, id, v1.ImageSpec{Ref: ref})
	})
}

const (
	key       = "images"         // the only key: one reconcile examines all images
	minPeriod = time.Second      // between two reconciles
	maxPeriod = 10 * time.Minute // a part of the retention in between
	parts     = 24
)

// New returns the controller that removes images after a time in which no container names
// them; retention is called at each reconcile, and 0 keeps all of them.
func New(s *store.Store, engine Engine, retention func() time.Duration, log *slog.Logger, m *controller.Metrics) *controller.Loop {
	return &controller.Loop{
		Name:       "image",
		Reconciler: &reconciler{s, engine, retention, log},
		Watch:      []controller.Source{controller.Once(key)},
		Workers:    1,
		BackOff:    controller.BackOff{Initial: minPeriod, Max: maxPeriod},
		Log:        log,
		Metrics:    m,
	}
}

type reconciler struct {
	store     *store.Store
	engine    Engine
	retention func() time.Duration
	log       *slog.Logger
}

// Reconcile records which images are named, and removes those that were not for long enough,
// the oldest first.
func (r *reconciler) Reconcile(ctx context.Context, _ string) (controller.Result, error) {
	keep := r.retention()
	again := controller.Result{RequeueAfter: min(max(keep/parts, minPeriod), maxPeriod)}
	if keep == 0 {
		again.RequeueAfter = maxPeriod
		return again, nil
	}
	images, now, err := r.observe(ctx)
	if err != nil {
		return controller.Result{}, err
	}
	due := slices.DeleteFunc(images, func(o v1.Image) bool {
		return o.Status.UnusedSince == nil || now.Sub(*o.Status.UnusedSince) < keep
	})
	slices.SortFunc(due, func(a, b v1.Image) int { return a.Status.UnusedSince.Compare(*b.Status.UnusedSince) })
	var errs []error
	for _, o := range due {
		errs = append(errs, r.remove(ctx, o))
	}
	return again, errors.Join(errs...)
}

// observe records since when images are not named, and returns all of them.
func (r *reconciler) observe(ctx context.Context) (images []v1.Image, now time.Time, err error) {
	named := map[string]bool{}
	err = r.store.View(func(tx *store.Tx) error {
		now = tx.Now()
		for _, c := range store.Containers.List(tx) {
			named[c.Spec.Image], named[c.Spec.InstallImage] = true, true
		}
		images = store.Images.List(tx)
		return nil
	})
	if err != nil {
		return nil, now, err
	}
	for i := range images {
		o := &images[i]
		used := named[o.Spec.Ref]
		if used { // unless the name is that of a newer image
			id, err := r.engine.ImageID(ctx, o.Spec.Ref)
			if err != nil {
				return nil, now, err
			}
			used = id == o.Meta.ID
		}
		if used == (o.Status.UnusedSince == nil) {
			continue
		}
		o.Status.UnusedSince = nil
		if !used {
			o.Status.UnusedSince = &now
		}
		err := r.store.Update(func(tx *store.Tx) error {
			return store.Images.SetStatus(tx, o.Meta.ID, func(s *v1.ImageStatus) { s.UnusedSince = o.Status.UnusedSince })
		})
		if err != nil {
			return nil, now, err
		}
	}
	return images, now, nil
}

// remove removes an image and its record. One from which a container exists stays.
func (r *reconciler) remove(ctx context.Context, o v1.Image) error {
	err := r.engine.RemoveImage(ctx, o.Meta.ID, o.Spec.Ref)
	if errors.Is(err, runtime.ErrImageInUse) {
		return nil
	}
	if err != nil {
		return err
	}
	r.log.Info("removed an image that no container names", "image", o.Spec.Ref, "id", o.Meta.ID)
	return r.store.Update(func(tx *store.Tx) error { return store.Images.Purge(tx, o.Meta.ID) })
}
