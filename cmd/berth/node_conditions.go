package main

import (
	"time"

	v1 "berth/api/v1"
)

// maxWaiting is how many changes of conditions wait while none can be stored.
const maxWaiting = 64

// conditions stores the changes of the node's conditions, in their order. What cannot
// be stored, because the store cannot be written, is stored once it can. It is for one
// goroutine.
type conditions struct {
	store   func(v1.Condition) error
	status  map[string]string // by type; as last seen
	waiting []v1.Condition    // not stored yet
}

func newConditions(store func(v1.Condition) error) *conditions {
	return &conditions{store: store, status: map[string]string{}}
}

// set records a condition, and stores it and those that wait.
func (c *conditions) set(now v1.Condition) {
	if c.status[now.Type] != now.Status {
		c.status[now.Type] = now.Status
		c.waiting = append(c.waiting, now)
		c.waiting = c.waiting[max(0, len(c.waiting)-maxWaiting):]
	}
	for len(c.waiting) > 0 && c.store(c.waiting[0]) == nil {
		c.waiting = c.waiting[1:]
	}
}

// engineCondition returns whether the engine answers. away is how long it has not, if it
// answers again.
func engineCondition(err error, away time.Duration) v1.Condition {
	if err != nil {
		return v1.Condition{Type: v1.EngineReachable, Status: v1.False, Reason: v1.ReasonEngineUnreachable,
			Message: "the engine does not answer: states are the last observed ones, and requests wait for it"}
	}
	return v1.Condition{Type: v1.EngineReachable, Status: v1.True, Reason: v1.ReasonAnswers, Message: "the engine answers again" + after(away)}
}

// storeCondition returns whether the store can be written. away is how long it could not,
// if it can again.
func storeCondition(err error, away time.Duration) v1.Condition {
	if err != nil {
		return v1.Condition{Type: v1.StoreWritable, Status: v1.False, Reason: v1.ReasonNotWritable,
			Message: storeReason(err) + ": requests are refused, except stop and kill"}
	}
	return v1.Condition{Type: v1.StoreWritable, Status: v1.True, Reason: v1.ReasonWritable, Message: "the store can be written again" + after(away)}
}

// after returns the text for how long something has lasted, empty if that is unknown.
func after(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return ", after " + d.Round(time.Millisecond).String()
}
