package container

import (
	"time"

	v1 "berth/api/v1"
	"berth/store"
)

// note keeps what a step found out. A change of the phase is told as an event,
// with its number in the status; so is every sentence of say. The message of an
// earlier step goes, unless change sets one.
func (s step) note(change func(st *v1.ContainerStatus, now time.Time), say ...string) error {
	return s.Store.MustUpdate(func(tx *store.Tx) error {
		return s.noteIn(tx, change, say...)
	})
}

func (s step) noteIn(tx *store.Tx, change func(st *v1.ContainerStatus, now time.Time), say ...string) error {
	return store.Containers.SetStatus(tx, s.c.Meta.ID, func(st *v1.ContainerStatus) {
		before := st.Phase
		st.ObservedGeneration, st.Message = s.c.Meta.Generation, ""
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

// phase is a change of nothing but the phase.
func phase(p v1.Phase) func(*v1.ContainerStatus, time.Time) {
	return func(st *v1.ContainerStatus, _ time.Time) { st.Phase = p }
}

// trouble notes why a step does not succeed, once, and hands the error back for
// the retry.
func (s step) trouble(err error) error {
	text := err.Error()
	if s.c.Status.Message == text {
		return err
	}
	noted := s.note(func(st *v1.ContainerStatus, _ time.Time) { st.Message = text })
	if noted != nil {
		s.Log.Error("the trouble of a container could not be noted", "container", s.c.Meta.ID, "err", noted)
	}
	return err
}

func set(st *v1.ContainerStatus, now time.Time, kind, status, reason, message string) {
	st.Conditions = v1.SetCondition(st.Conditions, v1.Condition{Type: kind, Status: status, Reason: reason, Message: message}, now)
}
