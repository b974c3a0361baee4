package server

import (
	"slices"
	"time"

	v1 "berth/api/v1"
)

// conditionsOf returns the conditions of a container as clients see them: the
// stored ones, the last observed ones, and EngineReachable. While the engine does
// not answer, Started becomes Unknown. This is derived on each read, so that an
// outage writes no status, however many containers there are.
func conditionsOf(o v1.Container, engine func() EngineHealth) []v1.Condition {
	list := append([]v1.Condition{}, o.Status.Conditions...)
	if engine == nil {
		return list
	}
	h := engine()
	c := v1.Condition{Type: v1.EngineReachable, Status: v1.True, Reason: v1.ReasonAnswers, Message: "the engine answers", Since: h.Since}
	if !h.Reachable {
		c.Status, c.Reason = v1.False, v1.ReasonEngineUnreachable
		c.Message = "the engine does not answer; the container's state is the last observed one"
		doubtStarted(list, h.Since)
	}
	return append(list, c)
}

// doubtStarted changes Started from True to Unknown: the container may have
// exited since then.
func doubtStarted(list []v1.Condition, since time.Time) {
	i := slices.IndexFunc(list, func(c v1.Condition) bool { return c.Type == v1.Started })
	if i >= 0 && list[i].Status == v1.True {
		list[i].Status, list[i].Reason, list[i].Since = v1.Unknown, v1.ReasonEngineUnreachable, since
		list[i].Message = "the container ran when the engine last answered"
	}
}
