package stream

import (
	"context"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	v1 "berth/api/v1"
	"berth/store"
)

// Pump publishes, logs and counts each transition that is stored from now on, until ctx ends. Where
// it has to leave some out, every listener ends with ErrSlow, for its client to
// read them from the store. Its error is that of a store that cannot be read.
func (h *Hub) Pump(ctx context.Context, s *store.Store) error {
	transitions := newTransitionLog(h.log)
	for ctx.Err() == nil {
		newest, err := lastEvent(s)
		if err != nil {
			return err
		}
		h.Missed() // nobody here receives what was stored up to newest
		for e, err := range s.Events(ctx, newest) {
			if err != nil {
				h.log.Error("transitions were not published; sockets are closed, and their clients resume", "after", newest, "err", err)
				break
			}
			newest = e.Seq
			h.Event(e)
			h.events.WithLabelValues(eventLabel(e)).Inc()
			transitions.write(e)
		}
	}
	return nil
}

func lastEvent(s *store.Store) (seq uint64, err error) {
	err = s.View(func(tx *store.Tx) error {
		_, seq = tx.EventBounds()
		return nil
	})
	return seq, err
}

// otherEvent is the label of a transition to an unknown state, so that the number of series is bounded.
const otherEvent = "other"

// eventKinds returns the kinds of transitions that are no states of containers.
func eventKinds() []string {
	return []string{v1.EventMessage, v1.EventBackup, v1.EventRestore, v1.EventPull}
}

// newEventCounter returns the counter of transitions. Its label is the state of a transition of a
// container, or else the kind of the event.
func newEventCounter() *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "berth_events_total",
		Help: "Stored transitions, by the state of a container, or daemon_message, backup, restore or pull."}, []string{"event"})
	for _, p := range v1.Phases() {
		c.WithLabelValues(string(p))
	}
	for _, kind := range eventKinds() {
		c.WithLabelValues(kind)
	}
	return c
}

func eventLabel(e v1.Event) string {
	switch {
	case slices.Contains(eventKinds(), e.Event):
		return e.Event
	case e.Event == v1.EventState && slices.Contains(v1.Phases(), v1.Phase(e.Data)):
		return e.Data
	}
	return otherEvent
}
