package event

import (
	"context"
	"errors"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	v1 "berth/api/v1"
	"berth/store"
)

// other is the label of a transition to an unknown state.
const other = "other"

// otherKinds returns the kinds of transitions that are no states of containers.
func otherKinds() []string {
	return []string{v1.EventMessage, v1.EventBackup, v1.EventRestore, v1.EventPull}
}

// Counter counts the transitions that are stored while it runs.
type Counter struct {
	store *store.Store
	total *prometheus.CounterVec
	seen  uint64
}

// NewCounter registers berth_events_total with reg. The label event is the state of a
// transition of a container, or else the kind of the event. It counts the transitions that are stored from now on.
func NewCounter(s *store.Store, reg prometheus.Registerer) (*Counter, error) {
	c := &Counter{store: s, total: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "berth_events_total",
		Help: "Stored transitions, by the state of a container, or daemon_message, backup, restore or pull.",
	}, []string{"event"})}
	for _, p := range v1.Phases() {
		c.total.WithLabelValues(string(p))
	}
	for _, kind := range otherKinds() {
		c.total.WithLabelValues(kind)
	}
	if err := reg.Register(c.total); err != nil {
		return nil, err
	}
	return c, s.View(func(tx *store.Tx) error {
		c.seen = store.LastEvent(tx)
		return nil
	})
}

// Run counts until ctx ends or the store is closed.
func (c *Counter) Run(ctx context.Context) error {
	for {
		err := c.count(ctx)
		if !errors.Is(err, store.ErrCompacted) {
			return err
		}
		if err := c.skip(); err != nil {
			return err
		}
	}
}

func (c *Counter) count(ctx context.Context) error {
	for e, err := range c.store.Events(ctx, c.seen) {
		if err != nil {
			return err
		}
		c.seen = e.Seq
		c.total.WithLabelValues(label(e)).Inc()
	}
	return nil
}

// skip moves the counter to the oldest transition that is still stored.
func (c *Counter) skip() error {
	return c.store.View(func(tx *store.Tx) error {
		c.seen = store.LastEvent(tx)
		if oldest, _ := store.EventRange(tx); oldest > 0 {
			c.seen = oldest - 1
		}
		return nil
	})
}

// label returns the label of a transition. It maps unknown states to other, so that the
// number of series is bounded.
func label(e v1.Event) string {
	switch {
	case slices.Contains(otherKinds(), e.Event):
		return e.Event
	case e.Event == v1.EventState && slices.Contains(v1.Phases(), v1.Phase(e.Data)):
		return e.Data
	}
	return other
}
