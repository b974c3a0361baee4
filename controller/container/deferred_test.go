package container_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// later changes a spec as an apply at the next start does.
func later(fields ...string) func(*v1.ContainerSpec) {
	return func(s *v1.ContainerSpec) { s.Image, s.Limits.Memory, s.Deferred = "j", 2<<30, fields }
}

// pending returns the status and the message of the condition Pending.
func pending(w *world) string {
	c := v1.FindCondition(w.get().Status.Conditions, v1.Pending)
	return c.Status + " " + c.Message
}

// TestChangeWaitsForTheNextStart: a run goes on in its container, and limits whose value changes are in
// force at once. A restart, a crash, and a start after a stop apply the rest.
func TestChangeWaitsForTheNextStart(t *testing.T) {
	for name, next := range map[string]func(w *world){
		"restart": func(w *world) { w.change(on) },
		"crash":   func(w *world) { w.engine.Outside.Exit(server, 1) },
		"stop and start": func(w *world) {
			w.change(off)
			time.Sleep(time.Minute)
			w.want(v1.Exit)
			w.change(on)
		},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, func(w *world) {
				w.engine.Outside.AddImage("j")
				w.installed(func(s *v1.ContainerSpec) { s.Limits.Memory = 1 << 30 })
				w.change(on)
				w.want(v1.Running)
				before := w.engine.Outside.State(server)
				w.change(later("image"))
				time.Sleep(time.Hour)
				require.Equal(t, "True image: changed at the next start", pending(w))
				now := w.engine.Outside.State(server)
				require.Equal(t, []any{before.ContainerID, before.StartedAt}, []any{now.ContainerID, now.StartedAt})
				require.EqualValues(t, 2<<30, now.Live.Memory)
				next(w)
				time.Sleep(10 * time.Minute)
				w.want(v1.Running)
				require.NotEqual(t, before.ContainerID, w.engine.Outside.State(server).ContainerID)
				require.Equal(t, w.get().Spec.SpecHash(), w.engine.Outside.State(server).SpecHash)
				require.Equal(t, "False no field waits for a start", pending(w))
			})
		})
	}
}

// TestLimitThatIsAddedWaits: an engine adds no limit to a container that runs.
func TestLimitThatIsAddedWaits(t *testing.T) {
	live(t, func(w *world) {
		w.engine.Outside.AddImage("j")
		w.installed(nil)
		w.change(on)
		before := w.count("update", server)
		w.change(later("image", "limits"))
		time.Sleep(time.Hour)
		require.Equal(t, "True image, limits: changed at the next start", pending(w))
		require.Equal(t, before, w.count("update", server))
		require.Equal(t, v1.Condition{}, v1.FindCondition(w.get().Status.Conditions, v1.LimitsApplied))
		w.change(on)
		time.Sleep(time.Minute)
		w.want(v1.Running)
		require.EqualValues(t, 2<<30, w.engine.Outside.State(server).Live.Memory)
	})
}

// TestRevertedChangeDoesNotWait: the run is what is asked for again.
func TestRevertedChangeDoesNotWait(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		w.change(func(s *v1.ContainerSpec) { s.User, s.Deferred = "x", []string{"user"} })
		time.Sleep(time.Minute)
		require.Equal(t, "True user: changed at the next start", pending(w))
		w.change(func(s *v1.ContainerSpec) { s.User = "" })
		time.Sleep(time.Minute)
		require.Equal(t, "False no field waits for a start", pending(w))
	})
}
