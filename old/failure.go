package container

import (
	"errors"
	"strings"
	"time"

	v1 "berth/api/v1"
	"berth/runtime"
	"berth/store"
)

// stepError is the error of a step.
type stepError struct {
	step execution
	do   Action
	err  error
}

func (e stepError) Error() string { return e.err.Error() }
func (e stepError) Unwrap() error { return e.err }

// reason returns the reason of the condition Reconciled: the cause if an operator can
// remove it, else the step.
func (e stepError) reason() string {
	if errors.Is(e.err, runtime.ErrMountMissing) {
		return reasonVolumeMissing
	}
	return e.do.failureReason()
}

// Failed records a failed step in the container's message and condition, with the
// time of the retry. It is the Failed of a controller.Loop. An error that is not a
// step's, such as a failed observation, is not recorded.
func (r *Reconciler) Failed(id string, err error, retryAt time.Time) {
	var failed stepError
	if !errors.As(err, &failed) {
		return
	}
	if retryAt.IsZero() { // at the next change or resync
		retryAt = time.Now().Add(r.Crash.Max)
	}
	if err := failed.step.recordFailure(failed.reason(), failed.err.Error(), retryAt); err != nil && !errors.Is(err, store.ErrNotFound) {
		r.Log.Error("could not save the last error of a container", "container", id, "err", err, "last_error", failed.err)
	}
}

// recordFailure records a failed step. It writes nothing if the same failure is
// recorded already.
func (s execution) recordFailure(reason, text string, retryAt time.Time) error {
	return s.r.Store.MustUpdate(func(tx *store.Tx) error {
		return store.Containers.SetStatus(tx, s.c.Meta.ID, func(st *v1.ContainerStatus) {
			st.ObservedGeneration, st.Message = s.c.Meta.Generation, text
			setCondition(st, tx.Now(), v1.Reconciled, v1.False, reason, text)
			switch {
			case s.c.Spec.Power != v1.PowerOn:
				st.NextRetryAt = nil
			case st.NextRetryAt != nil:
				st.NextRetryAt = &retryAt
			}
			trackUnready(s.c.Spec, st, tx.Now())
		})
	})
}

// failing reports whether the last step of a container failed.
func failing(c v1.Container) bool {
	return v1.FindCondition(c.Status.Conditions, v1.Reconciled).Status == v1.False
}

// failureReason returns the condition's reason for a failure of a, such as
// KillServerFailed.
func (a Action) failureReason() string {
	var b strings.Builder
	for word := range strings.FieldsSeq(a.String()) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String() + "Failed"
}
