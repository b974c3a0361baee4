package container

import (
	"slices"
	"strings"
	"time"

	v1 "berth/api/v1"
	"berth/store"
)

// change sets the facts that a step has found in a status.
type change func(st *v1.ContainerStatus, now time.Time)

// message is an event for clients. Reason is that of a condition, or empty.
type message struct{ reason, text string }

// record stores a status after a step toward the newest spec. The message of an earlier step
// is cleared unless set sets one.
func (t *task) record(set change, messages ...message) error {
	return t.Store.MustUpdate(func(tx *store.Tx) error { return t.recordIn(tx, set, messages...) })
}

// recordIn is record in a transaction of the caller.
func (t *task) recordIn(tx *store.Tx, set change, messages ...message) error {
	return t.write(tx, func(st *v1.ContainerStatus, now time.Time) {
		st.ObservedGeneration, st.Message = t.c.Meta.Generation, ""
		clearFailure(st, now)
		set(st, now)
	}, messages...)
}

// amend stores a status after a step that is none toward the newest spec: that does not
// count as observed, and the message stays.
func (t *task) amend(set change, messages ...message) error {
	return t.Store.MustUpdate(func(tx *store.Tx) error { return t.amendIn(tx, set, messages...) })
}

// amendIn is amend in a transaction of the caller.
func (t *task) amendIn(tx *store.Tx, set change, messages ...message) error {
	return t.write(tx, func(st *v1.ContainerStatus, now time.Time) {
		clearFailure(st, now)
		set(st, now)
	}, messages...)
}

// report is record with a message that is an event too.
func (t *task) report(reason, text string, set change) error {
	return t.record(func(st *v1.ContainerStatus, now time.Time) {
		st.Message = text
		set(st, now)
	}, message{reason, text})
}

// recordFailure records a failed step, and when it is tried again.
func (t *task) recordFailure(reason, text string, retryAt time.Time) error {
	return t.Store.MustUpdate(func(tx *store.Tx) error {
		return t.write(tx, func(st *v1.ContainerStatus, now time.Time) {
			st.ObservedGeneration, st.Message = t.c.Meta.Generation, text
			setCondition(st, now, condition(v1.Reconciled, v1.False, reason, text))
			if st.NextRetryAt != nil && st.NextRetryAt.Before(retryAt) { // the backoff of a crash may be longer
				st.NextRetryAt = &retryAt
			}
		})
	})
}

// write stores a changed status, and is the one place where the transitions and the messages
// of a container are emitted. A change of the phase is a transition, whose sequence number is
// part of the status.
func (t *task) write(tx *store.Tx, set change, messages ...message) error {
	return store.Containers.SetStatus(tx, t.c.Meta.ID, func(st *v1.ContainerStatus) {
		before := t.c
		before.Status = *st
		before.Status.Conditions = slices.Clone(st.Conditions) // set changes them in place
		set(st, tx.Now())
		derive(before, t.o, st, tx.Now())
		st.Message = v1.MessageText(st.Message)
		for _, m := range messages {
			tx.Emit(v1.Event{Container: t.c.Meta.ID, Event: v1.EventMessage, Data: m.text, Reason: m.reason, Actor: tx.Actor()})
		}
		if st.Phase != before.Status.Phase {
			st.Actor = actorOf(t.c.Spec, before.Status, *st)
			e := tx.Emit(transition(t.c.Meta.ID, before.Status.Phase, *st, tx.Now()))
			st.Seq, st.Since = e.Seq, e.Time
		}
	})
}

// recordUnchanged records what is about to be done. It returns false if the spec has changed
// since it was loaded, or allows, if not nil, returns false: the request that changed it saw
// neither the announced run nor the volume to be mounted.
func (t *task) recordUnchanged(allows func(*store.Tx) bool, record func(*store.Tx) error) (recorded bool, err error) {
	err = t.Store.MustUpdate(func(tx *store.Tx) error {
		now, err := store.Containers.Get(tx, t.c.Meta.ID)
		recorded = err == nil && now.Meta.Generation == t.c.Meta.Generation && (allows == nil || allows(tx))
		if !recorded {
			return err
		}
		return record(tx)
	})
	return recorded, err
}

// transition returns the event of a container's change from a phase to the one of st. An
// exit after which a backoff begins has the time of the next start.
func transition(id string, from v1.Phase, st v1.ContainerStatus, now time.Time) v1.Event {
	e := v1.Event{Container: id, Event: v1.EventState, Data: string(st.Phase), From: from, Actor: st.Actor}
	switch st.Phase {
	case v1.Exit:
		e.Reason, e.ExitCode = v1.FindCondition(st.Conditions, v1.Started).Reason, st.ExitCode
		if st.NextRetryAt != nil && st.NextRetryAt.After(now) {
			e.RestartCount, e.NextRetryAt = st.RestartCount, st.NextRetryAt
		}
	case v1.Stopping:
		if timedOut(st) {
			e.Reason = v1.ReasonStartTimedOut
		}
	case v1.Failed:
		e.Reason, e.ExitCode = v1.FindCondition(st.Conditions, v1.Installed).Reason, st.ExitCode
	}
	return e
}

// actorOf returns who caused the transition from before to st: the actor of the last request
// of the spec, until its run or its installation has ended. Crashes, retries and repairs are
// berth's own.
func actorOf(spec v1.ContainerSpec, before, st v1.ContainerStatus) v1.Actor {
	requested, inherited := false, false
	switch st.Phase {
	case v1.Installing, v1.Deleting:
		requested = true
	case v1.Ready, v1.Failed, v1.Running:
		inherited = true
	case v1.Starting:
		requested = st.ObservedRun != before.ObservedRun
	case v1.Stopping: // otherwise because of disk pressure, or because it was started from outside
		requested = !st.Unrequested && (before.ObservedInstall != spec.InstallGeneration || spec.Power == v1.PowerOff ||
			before.ObservedRun != spec.RunGeneration)
	case v1.Exit:
		killed := spec.KillGeneration > 0 && before.ObservedRun <= spec.KillGeneration
		reason := v1.FindCondition(st.Conditions, v1.Started).Reason
		refused := before.Phase == v1.Starting && st.StartedAt == nil && reason != reasonRemoved && reason != reasonNotStarted
		requested = spec.Power == v1.PowerOff && (killed || reason == reasonNotStarted)
		inherited = before.Phase == v1.Stopping || refused
	}
	actor := v1.Actor{}
	switch {
	case requested:
		actor = spec.RequestedBy
	case inherited:
		actor = before.Actor
	}
	if actor == (v1.Actor{}) {
		return v1.Controller()
	}
	return actor
}

// markObserved records that the newest spec was observed, that no step fails, and that no image
// is being pulled.
func (t *task) markObserved() error {
	if t.observed() {
		return nil
	}
	failed := v1.FindCondition(t.c.Status.Conditions, v1.Reconciled)
	over, pulling := failing(t.c), t.pulling()
	return t.record(func(st *v1.ContainerStatus, _ time.Time) {
		if !pulling && (!over || t.c.Status.Message != failed.Message) {
			st.Message = t.c.Status.Message
		}
	})
}

// observed reports whether markObserved has nothing to record.
func (t *task) observed() bool {
	return t.c.Status.ObservedGeneration == t.c.Meta.Generation && !failing(t.c) && !t.pulling()
}

// pulling reports whether the message of a container is about the pull of an image.
func (t *task) pulling() bool { return strings.HasPrefix(t.c.Status.Message, pullingText) }

// reported reports whether a message is recorded already for the newest spec.
func (t *task) reported(text string) bool {
	return t.c.Status.Message == v1.MessageText(text) && t.c.Status.ObservedGeneration == t.c.Meta.Generation
}
