package event

import (
	"context"
	"log/slog"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

const (
	key    = "retention"
	period = time.Minute // between two reconciles
)

// New returns the controller that trims the transitions of s. It calls settings at each
// reconcile, so that a changed configuration applies without a restart.
func New(s *store.Store, settings func() v1.Config, log *slog.Logger, m *controller.Metrics) *controller.Loop {
	return &controller.Loop{
		Name:       "event",
		Reconciler: &reconciler{store: s, settings: settings, log: log},
		Watch:      []controller.Source{controller.Once(key)},
		Workers:    1,
		BackOff:    controller.BackOff(time.Second, period),
		Log:        log,
		Metrics:    m,
	}
}

type reconciler struct {
	store    *store.Store
	settings func() v1.Config
	log      *slog.Logger
}

// Reconcile removes transitions that are too old or too many.
func (r *reconciler) Reconcile(context.Context, string) (controller.Result, error) {
	keep := r.settings().Events
	var now time.Time
	err := r.store.View(func(tx *store.Tx) error {
		now = tx.Now()
		return nil
	})
	if err != nil {
		return controller.Result{}, err
	}
	removed, err := r.store.TrimEvents(now.Add(-time.Duration(keep.Retention)), keep.Max)
	if removed > 0 {
		r.log.Debug("removed old transitions", "count", removed)
	}
	return controller.Result{RequeueAfter: period}, err
}
