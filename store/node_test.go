package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// TestNodeConditionsEmitChanges sets a condition several times, over a restart too. Each
// change of its status is one transition, and its time is that of the condition.
func TestNodeConditionsEmitChanges(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	away := v1.Condition{Type: v1.EngineReachable, Status: v1.False, Reason: v1.ReasonEngineUnreachable, Message: "away"}
	back := v1.Condition{Type: v1.EngineReachable, Status: v1.True, Reason: v1.ReasonAnswers, Message: "back"}
	set := func(list ...v1.Condition) {
		for _, c := range list {
			require.NoError(t, s.MustUpdate(func(tx *Tx) error { return SetNodeCondition(tx, c) }))
		}
	}
	set(back)
	_, newest := rangeOf(t, s)
	require.Zero(t, newest, "it was always True")
	set(away, away)
	require.NoError(t, s.Close())
	s = openIn(t, dir)
	set(away, back, back, away)
	list, err := read(s, 0, 10)
	require.NoError(t, err)
	require.Len(t, list, 3)
	for i, c := range []v1.Condition{away, back, away} {
		e := list[i]
		require.Equal(t, []string{v1.EventMessage, c.Message, c.Reason, "", "controller"}, []string{e.Event, e.Data, e.Reason, e.Container, string(e.Actor.Via)})
	}
	{
		conditions, err := NodeConditions(s.Read())
		require.Len(t, conditions, 1)
		require.True(t, conditions[0].Since.Equal(list[2].Time))
		require.NoError(t, err)
	}
}
