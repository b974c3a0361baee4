package event

import (
	"context"
	"errors"
	"log/slog"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

const (
	key    = "retention"
	period = 30 * time.Second // between two reconciles
)

// New returns the controller that trims the transitions and the audit log of s. It calls settings at each reconcile, so
// that a changed configuration applies without a restart.
func New(s *store.Store, settings func() v1.Config, log *slog.Logger, m *controller.Metrics) *controller.Loop {
	return &controller.Loop{
		Name:       "event",
		Reconciler: &reconciler{store: s, settings: settings, log: log},
		Signals:    []controller.Source{controller.Once(key)},
		Workers:    1,
		BackOff:    controller.BackOff{Initial: time.Second, Max: period},
		Log:        log,
		Metrics:    m,
	}
}

type reconciler struct {
	store    *store.Store
	settings func() v1.Config
	log      *slog.Logger
}

// Reconcile removes the transitions and the entries of the audit log that are too old
// or too many, by Store.AgeTime. If one of them fails, the others are removed all the same.
func (r *reconciler) Reconcile(context.Context, string) (controller.Result, error) {
	c := r.settings()
	now := r.store.AgeTime()
	transitions, err := r.store.TrimEvents(now.Add(-time.Duration(c.Events.Retention)), c.Events.Max)
	entries, auditErr := r.store.TrimAudit(now.Add(-time.Duration(c.Audit.Retention)), c.Audit.Max)
	if transitions+entries > 0 {
		r.log.Debug("removed what is older than the retention", "transitions", transitions, "audit_entries", entries)
	}
	return controller.Result{RequeueAfter: period}, errors.Join(err, auditErr)
}
