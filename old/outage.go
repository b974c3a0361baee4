package container

import (
	"context"
	"sync"
	"time"

	v1 "berth/api/v1"
	"berth/runtime"
)

// engineWait is the time between two attempts to query an engine that reported an
// exit and may be shutting down.
const engineWait = time.Second

// Outage records which instance of the engine answered last and when the engine
// was last unreachable. The instance determines whether a run ended with its
// engine; for an engine that does not name its instance, the times do.
type Outage struct {
	mu       sync.Mutex
	instance string
	answered time.Time // start of the last call that the engine answered over a new connection
	from, to time.Time // of the last outage; to is zero while it lasts
}

// query returns the engine's instance. An error means that the engine accepts no
// new connection: it is unreachable or shutting down.
func (o *Outage) query(ctx context.Context, e Instancer) (instance string, err error) {
	began := time.Now()
	if instance, err = e.Instance(ctx); err != nil {
		return "", err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.instance, o.answered = instance, began
	return instance, nil
}

// last returns the instance that answered last; empty if it is unknown.
func (o *Outage) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.instance
}

// begin records that the event stream ended. The outage began at the last answer:
// an engine stops its containers while the stream is still open.
func (o *Outage) begin(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.from.IsZero() && o.to.IsZero() {
		return
	}
	o.from, o.to = o.answered, time.Time{}
	if o.from.IsZero() {
		o.from = now
	}
}

// end records that the engine's containers were listed.
func (o *Outage) end(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.from.IsZero() && o.to.IsZero() {
		o.to = now
	}
}

// caused reports whether a container exited during the outage.
func (o *Outage) caused(s runtime.State) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return exited(s) && !o.from.IsZero() && s.FinishedAt.After(o.from) && (o.to.IsZero() || s.FinishedAt.Before(o.to))
}

func exited(s runtime.State) bool {
	return !s.Running && !s.StartedAt.IsZero() && !s.FinishedAt.IsZero()
}

// observeEngine queries the engine's instance if the cause of an exit determines
// the next step. Otherwise the instance that answered last is enough.
func (r *Reconciler) observeEngine(ctx context.Context, c v1.Container, o *Observed) {
	o.ServerLost, o.InstallLost = r.Outage.caused(o.Server), r.Outage.caused(o.Install)
	o.Engine = r.Outage.last()
	if !causeMatters(c, *o) {
		return
	}
	instance, err := r.Outage.query(ctx, r.Engine)
	if err != nil {
		r.Log.Info("an exit is not recorded yet: the engine accepts no new connection", "container", c.Meta.ID, "err", err)
		return
	}
	o.Engine, o.Confirmed = instance, true
}
