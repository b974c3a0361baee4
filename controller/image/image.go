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
		o, err := store.Images.Get(tx, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return store.Images.Create(tx, id, v1.ImageSpec{Ref: ref})
		case err != nil || slices.Contains(o.Spec.Refs(), ref) || len(o.Spec.Also) == maxAlso:
			return err
		}
		return store.Images.SetSpec(tx, id, func(s *v1.ImageSpec) error {
			s.Also = append(s.Also, ref)
			return nil
		})
	})
}

// maxAlso bounds the references of one image.
const maxAlso = 1000

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
		Signals:    []controller.Source{controller.Once(key)},
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
	now = r.store.AgeTime()
	tx := r.store.Read()
	for _, c := range store.Containers.List(tx) {
		named[c.Spec.Image], named[c.Spec.InstallImage] = true, true
	}
	for _, a := range store.Arrivals.List(tx) {
		if a.Spec.Ended == "" {
			named[a.Spec.Container.Image] = true
		}
	}
	images = store.Images.List(tx)
	for i := range images {
		o := &images[i]
		used, err := r.used(ctx, *o, named)
		if err != nil {
			return nil, now, err
		}
		if used == (o.Status.UnusedSince == nil) {
			continue
		}
		o.Status.UnusedSince = nil
		if !used {
			o.Status.UnusedSince = &now
		}
		err = r.store.Update(func(tx *store.Tx) error {
			return store.Images.SetStatus(tx, o.Meta.ID, func(s *v1.ImageStatus) { s.UnusedSince = o.Status.UnusedSince })
		})
		if err != nil {
			return nil, now, err
		}
	}
	return images, now, nil
}

// used reports whether a container names an image, by a reference that is not that of a newer image.
func (r *reconciler) used(ctx context.Context, o v1.Image, named map[string]bool) (bool, error) {
	for _, ref := range o.Spec.Refs() {
		if !named[ref] {
			continue
		}
		if id, err := r.engine.ImageID(ctx, ref); err != nil || id == o.Meta.ID {
			return err == nil, err
		}
	}
	return false, nil
}

// remove removes an image by each of its references, and its record. One from which a container exists stays.
func (r *reconciler) remove(ctx context.Context, o v1.Image) error {
	for _, ref := range o.Spec.Refs() {
		err := r.engine.RemoveImage(ctx, o.Meta.ID, ref)
		if errors.Is(err, runtime.ErrImageInUse) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	r.log.Info("removed an image that no container names", "image", o.Spec.Ref, "id", o.Meta.ID)
	return r.store.Update(func(tx *store.Tx) error { return store.Images.Purge(tx, o.Meta.ID) })
}
