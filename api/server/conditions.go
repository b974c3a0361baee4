package server

import (
	"slices"
	"time"

	v1 "berth/api/v1"
)

// EngineHealth is whether the engine answers, and since when it does or does not.
type EngineHealth struct {
	Reachable bool
	Since     time.Time
}

// unreachable is the reason of what is unknown while the engine does not answer.
const unreachable = "EngineUnreachable"

// conditionsOf returns the conditions of a container as a client sees them. What
// is stored is what was observed last, so while the engine does not answer
// nobody knows whether what ran still runs. That is derived here: an outage
// writes nothing, however many containers there are.
func conditionsOf(o v1.Container, engine func() EngineHealth) []v1.Condition {
	list := append([]v1.Condition{}, o.Status.Conditions...)
	if engine == nil {
		return list
	}
	h := engine()
	c := v1.Condition{Type: v1.EngineReachable, Status: v1.True, Reason: "Answers", Message: "the engine answers", Since: h.Since}
	if !h.Reachable {
		c.Status, c.Reason = v1.False, unreachable
		c.Message = "the engine does not answer: the state is the one observed last"
		doubtStarted(list, h.Since)
	}
	return append(list, c)
}

// doubtStarted makes Unknown that a run goes on: it may have ended since then.
func doubtStarted(list []v1.Condition, since time.Time) {
	i := slices.IndexFunc(list, func(c v1.Condition) bool { return c.Type == v1.Started })
	if i >= 0 && list[i].Status == v1.True {
		list[i].Status, list[i].Reason, list[i].Since = v1.Unknown, unreachable, since
		list[i].Message = "it ran when the engine last answered"
	}
}
