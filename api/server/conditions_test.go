package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// TestConditionsDuringAnOutage: Started becomes Unknown for clients while the engine
// does not answer. The stored conditions do not change.
func TestConditionsDuringAnOutage(t *testing.T) {
	at := time.Unix(1000, 0)
	for started, want := range map[string]string{v1.True: v1.Unknown, v1.False: v1.False, v1.Unknown: v1.Unknown} {
		var o v1.Container
		o.Status.Conditions = []v1.Condition{{Type: v1.Installed, Status: v1.True}, {Type: v1.Started, Status: started, Message: "m"}}
		for _, reachable := range []bool{true, false} {
			list := conditionsOf(o, func() EngineHealth { return EngineHealth{reachable, at} })
			require.Equal(t, v1.True, v1.FindCondition(list, v1.Installed).Status)
			engine, got := v1.FindCondition(list, v1.EngineReachable), v1.FindCondition(list, v1.Started)
			require.Equal(t, at, engine.Since)
			require.Equal(t, map[bool]string{true: v1.True, false: v1.False}[reachable], engine.Status)
			require.Equal(t, map[bool]string{true: started, false: want}[reachable], got.Status)
			require.Equal(t, started, o.Status.Conditions[1].Status)
		}
		o.Status.Conditions = append(o.Status.Conditions, v1.Condition{Type: v1.MachineReachable, Status: v1.Unknown, Since: at})
		got := v1.FindCondition(conditionsOf(o, func() EngineHealth { return EngineHealth{true, at} }), v1.Started)
		require.Equal(t, want, got.Status)
		if started == v1.True {
			require.Equal(t, v1.Condition{Type: v1.Started, Status: v1.Unknown, Reason: v1.ReasonMachineUnreachable,
				Message: "the container ran when its machine last answered", Since: at}, got)
		}
		require.Equal(t, started, o.Status.Conditions[1].Status)
		o.Status.Conditions[2].Status = v1.True
		require.Equal(t, started, v1.FindCondition(conditionsOf(o, func() EngineHealth { return EngineHealth{true, at} }), v1.Started).Status)
	}
}
