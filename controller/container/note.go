package container

import (
	"time"

	v1 "berth/api/v1"
	"berth/store"
)

// record keeps what a step found out. A change of the phase is told as an event,
// with its number in the status; so is every sentence of say. The message of an
// earlier step goes, unless change sets one.
func (s step) record(change func(st *v1.ContainerStatus, now time.Time), say ...string) error {
	return s.Store.MustUpdate(func(tx *store.Tx) error {
		return s.recordIn(tx, change, say...)
	})
}

func (s step) recordIn(tx *store.Tx, change func(st *v1.ContainerStatus, now time.Time), say ...string) error {
	return store.Containers.SetStatus(tx, s.c.Meta.ID, func(st *v1.ContainerStatus) {
		before := st.Phase
		st.ObservedGeneration, st.Message = s.c.Meta.Generation, ""
		if s.c.Spec.Power == v1.PowerOff {
			st.NextRetryAt = nil
		}
		s.clearStaleConditions(st, tx.Now())
		change(st, tx.Now())
		for _, text := range say {
			store.Emit(tx, v1.Event{Container: s.c.Meta.ID, Event: v1.EventMessage, Data: text})
		}
		if st.Phase != before {
			e := store.Emit(tx, v1.Event{Container: s.c.Meta.ID, Event: v1.EventState, Data: string(st.Phase)})
			st.Seq, st.Since = e.Seq, e.Time
		}
	})
}

// clearStaleConditions takes back conditions that the container which is there has overcome.
func (s step) clearStaleConditions(st *v1.ContainerStatus, now time.Time) {
	if failing(s.c) {
		set(st, now, v1.Reconciled, v1.True, "StepSucceeded", "the last step succeeded")
	}
	server := s.o.Server
	if !exists(server) || server.SpecHash != s.c.Spec.SpecHash() {
		return
	}
	if v1.FindCondition(st.Conditions, v1.ImageAvailable).Status == v1.Unknown {
		imagePresent(st, now)
	}
	if v1.FindCondition(st.Conditions, v1.LimitsApplied).Status == v1.False && !limitsDiffer(s.c.Spec, server.Live) {
		set(st, now, v1.LimitsApplied, v1.True, "Applied", "the limits are in force")
	}
}

// keepObserved is for a record that is no step toward the newest spec: it must
// not count as observed by it, nor lose its message.
func (s step) keepObserved(st *v1.ContainerStatus) {
	st.ObservedGeneration, st.Message = s.c.Status.ObservedGeneration, s.c.Status.Message
}

// phase is a change of nothing but the phase.
func phase(p v1.Phase) func(*v1.ContainerStatus, time.Time) {
	return func(st *v1.ContainerStatus, now time.Time) {
		st.Phase = p
		startedAs(st, now)
	}
}

// reported says whether a message was noted already, with the newest spec.
func (s step) reported(text string) bool {
	return s.c.Status.Message == text && s.c.Status.ObservedGeneration == s.c.Meta.Generation
}
