package container_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime"
	"berth/store"
)

func TestNoRetryWhilePowerIsOff(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		w.engine.Outside.Exit(server, 1)
		require.NotNil(t, w.want(v1.Exit).Status.NextRetryAt)
		w.change(func(s *v1.ContainerSpec) { off(s); s.Workdir = "/x" })
		c := w.want(v1.Exit)
		require.Nil(t, c.Status.NextRetryAt)
	})
}

func TestLimitsConditionRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		agree := w.refuse("update", server, runtime.ErrInvalid)
		defer w.run()()
		w.installed(func(s *v1.ContainerSpec) { s.Limits.Memory = 64 << 20 })
		w.change(on)
		w.change(func(s *v1.ContainerSpec) { s.Limits.Memory = 128 << 20 })
		c := w.want(v1.Running)
		require.Equal(t, v1.False, v1.FindCondition(c.Status.Conditions, v1.LimitsApplied).Status)
		agree()
		w.change(func(s *v1.ContainerSpec) { s.Limits.Memory = 256 << 20 })
		c = w.want(v1.Running)
		require.Equal(t, v1.True, v1.FindCondition(c.Status.Conditions, v1.LimitsApplied).Status)
		require.Empty(t, c.Status.Message)
	})
}

func TestImageConditionRecovers(t *testing.T) {
	live(t, func(w *world) {
		w.engine.Outside.RefusePull("gone", runtime.ErrImageNotFound)
		w.installed(nil)
		w.change(func(s *v1.ContainerSpec) { s.Image = "gone" })
		time.Sleep(time.Minute)
		require.Equal(t, v1.Unknown, v1.FindCondition(w.want(v1.Ready).Status.Conditions, v1.ImageAvailable).Status)
		w.change(func(s *v1.ContainerSpec) { s.Image = "i" })
		c := w.want(v1.Ready)
		require.Equal(t, v1.True, v1.FindCondition(c.Status.Conditions, v1.ImageAvailable).Status)
		require.Empty(t, c.Status.Message)
	})
}

func TestLastErrorIsCleared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		agree := w.refuse("update", server, runtime.ErrUnavailable)
		defer w.run()()
		w.installed(func(s *v1.ContainerSpec) { s.Limits.Memory = 64 << 20 })
		w.change(on)
		w.change(func(s *v1.ContainerSpec) { s.Limits.Memory = 128 << 20 })
		c := w.want(v1.Running)
		require.NotEmpty(t, c.Status.Message)
		agree()
		time.Sleep(10 * time.Minute)
		c = w.want(v1.Running)
		require.Empty(t, c.Status.Message)
	})
}

// TestSpecObservedDespiteSameError: the failure is the same for both specs.
func TestSpecObservedDespiteSameError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.refuse("create", server, runtime.ErrUnavailable)
		defer w.run()()
		w.create(nil)
		w.engine.Outside.Exit(installer, 0)
		for range 2 {
			time.Sleep(time.Minute)
			c := w.want(v1.Installing)
			require.Equal(t, runtime.ErrUnavailable.Error(), c.Status.Message)
			require.Equal(t, c.Meta.Generation, c.Status.ObservedGeneration)
			w.change(on)
		}
	})
}

func TestRefusedLimitIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.refuse("update", server, runtime.ErrInvalid)
		defer w.run()()
		w.installed(func(s *v1.ContainerSpec) { s.Limits.Memory = 64 << 20 })
		w.change(func(s *v1.ContainerSpec) { s.Limits.Memory = 128 << 20 })
		w.change(on)
		c := w.want(v1.Running)
		require.Equal(t, v1.False, v1.FindCondition(c.Status.Conditions, v1.LimitsApplied).Status)
		time.Sleep(time.Hour)
		require.LessOrEqual(t, w.count("update", server), 2, "once for each spec")
	})
}

// TestExitOfRestartIsNoResult records with the exit of a restart that the next run
// follows, so that no client takes the exit for the end.
func TestExitOfRestartIsNoResult(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		w.want(v1.Running)
		agree := w.refuse("instance", runtime.Name{}, runtime.ErrUnavailable) // the next start cannot be recorded
		w.change(on)
		c := w.want(v1.Exit)
		require.NotNil(t, c.Status.NextRetryAt)
		agree()
		time.Sleep(10 * time.Minute)
		require.Nil(t, w.want(v1.Running).Status.NextRetryAt)
	})
}

// TestExitNamesNextStart: the event of a crash has how often the policy has started the
// container, and when it does so next. One that a client asked for has neither.
func TestExitNamesNextStart(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		for restarts := range 2 {
			w.engine.Outside.Exit(server, 3)
			due := w.want(v1.Exit).Status.NextRetryAt
			e := lastExit(w)
			require.Equal(t, restarts, e.RestartCount)
			require.Equal(t, due, e.NextRetryAt)
			time.Sleep(time.Minute)
			w.want(v1.Running)
		}
		w.change(func(s *v1.ContainerSpec) { s.RunGeneration++ })
		w.want(v1.Running)
		e := lastExit(w)
		require.Zero(t, e.RestartCount)
		require.Nil(t, e.NextRetryAt)
	})
}

// lastExit returns the event of the last exit.
func lastExit(w *world) (last v1.Event) {
	w.t.Helper()
	events, err := store.ReadEvents(w.store.Read(), 0, 1000)
	for _, e := range events {
		if e.Event == v1.EventState && e.Data == string(v1.Exit) {
			last = e
		}
	}
	require.NoError(w.t, err)
	return last
}

// TestStartingWithoutPattern: the engine alone is waited for, and the message names that.
func TestStartingWithoutPattern(t *testing.T) {
	for pattern, want := range map[string][2]string{"": {"the engine is starting it", "the engine is starting it"}, "^Done": {"", "the start pattern has not matched yet"}} {
		live(t, func(w *world) {
			w.installed(func(s *v1.ContainerSpec) { s.StartPattern = pattern })
			w.console.held.Store(true)
			w.change(on)
			st := w.want(v1.Starting).Status
			require.Equal(t, want, [2]string{st.Message, v1.FindCondition(st.Conditions, v1.Started).Message})
			w.console.held.Store(false)
			time.Sleep(2 * time.Minute)
			require.Empty(t, w.want(v1.Running).Status.Message)
		})
	}
}
