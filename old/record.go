package container

import (
	"time"

	v1 "berth/api/v1"
	"berth/store"
)

// record stores a changed status. A change of the phase emits an event and puts its
// sequence number into the status; each of messages is an event too. The message of
// an earlier step is cleared unless change sets one.
func (s execution) record(change func(st *v1.ContainerStatus, now time.Time), messages ...string) error {
	return s.r.Store.MustUpdate(func(tx *store.Tx) error {
		return s.recordIn(tx, change, messages...)
	})
}

// recordWarning stores a changed status, and a warning with the reason of a condition.
// Text is the message of both.
func recordWarning(s execution, reason, text string, change func(st *v1.ContainerStatus, now time.Time)) error {
	return s.r.Store.MustUpdate(func(tx *store.Tx) error {
		store.Emit(tx, v1.Event{Container: s.c.Meta.ID, Event: v1.EventMessage, Data: text, Reason: reason, Actor: tx.Actor()})
		return s.recordIn(tx, func(st *v1.ContainerStatus, now time.Time) {
			st.Message = text
			change(st, now)
		})
	})
}

// recordIn is record in a transaction of the caller.
func (s execution) recordIn(tx *store.Tx, change func(st *v1.ContainerStatus, now time.Time), messages ...string) error {
	return store.Containers.SetStatus(tx, s.c.Meta.ID, func(st *v1.ContainerStatus) {
		before := st.Clone()
		st.ObservedGeneration, st.Message = s.c.Meta.Generation, ""
		if s.c.Spec.Power == v1.PowerOff {
			st.NextRetryAt = nil
		}
		s.clearStaleConditions(st, tx.Now())
		change(st, tx.Now())
		for _, text := range messages {
			store.Emit(tx, v1.Event{Container: s.c.Meta.ID, Event: v1.EventMessage, Data: text, Actor: tx.Actor()})
		}
		keepVolumeMessage(st)
		trackUnready(s.c.Spec, st, tx.Now())
		clearUnmatched(st, tx.Now())
		clearImageCurrent(s.c.Spec, st)
		if st.Phase != before.Phase {
			st.Actor = actorOf(s.c.Spec, before, *st)
			e := store.Emit(tx, transition(s.c.Meta.ID, before.Phase, *st, tx.Now()))
			st.Seq, st.Since = e.Seq, e.Time
		}
	})
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
		requested = !st.Unrequested && (before.ObservedInstall != spec.InstallGeneration || spec.Power == v1.PowerOff || before.ObservedRun != spec.RunGeneration)
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

// trackUnready keeps the time since which the container is not what was requested.
func trackUnready(spec v1.ContainerSpec, st *v1.ContainerStatus, now time.Time) {
	switch {
	case v1.Unready(spec, *st) == "":
		st.UnreadySince = nil
	case st.UnreadySince == nil:
		st.UnreadySince = &now
	}
}

// clearStaleConditions resets the conditions of problems that the observed
// container no longer has.
func (s execution) clearStaleConditions(st *v1.ContainerStatus, now time.Time) {
	if failing(s.c) {
		setCondition(st, now, v1.Reconciled, v1.True, "StepSucceeded", "the last step succeeded")
	}
	server := s.o.Server
	if !exists(server) || server.SpecHash != s.c.Spec.SpecHash() {
		return
	}
	if image := v1.FindCondition(st.Conditions, v1.ImageAvailable).Status; image == v1.Unknown || image == v1.False {
		setImagePresent(st, now)
	}
	if v1.FindCondition(st.Conditions, v1.LimitsApplied).Status == v1.False && !limitsDiffer(s.c.Spec, server.Live) {
		setCondition(st, now, v1.LimitsApplied, v1.True, "Applied", "the limits are in force")
	}
}

// keepObserved keeps the observed generation and the message. A record that is no
// step toward the newest spec must change neither.
func (s execution) keepObserved(st *v1.ContainerStatus) {
	st.ObservedGeneration, st.Message = s.c.Status.ObservedGeneration, s.c.Status.Message
}

// setPhase returns a change of nothing but the phase.
func setPhase(spec v1.ContainerSpec, p v1.Phase) func(*v1.ContainerStatus, time.Time) {
	return func(st *v1.ContainerStatus, now time.Time) {
		st.Phase = p
		setStarted(spec, st, now)
	}
}

// reported reports whether a message is recorded already for the newest spec.
func (s execution) reported(text string) bool {
	return s.c.Status.Message == text && s.c.Status.ObservedGeneration == s.c.Meta.Generation
}
