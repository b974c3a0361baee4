package container_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime"
)

// TestMountRefusedIsRetried refuses a mount when the installer and the server
// are created and started. The refusal is recorded once as a condition and an event,
// and nothing else fails.
func TestMountRefusedIsRetried(t *testing.T) {
	live(t, func(w *world) {
		refusal := &pins{err: fmt.Errorf("mount of /srv/link at /maps: %w: a part of the path is a link", runtime.ErrMountRefused)}
		w.rec.Mounts = refusal
		w.create(func(s *v1.ContainerSpec) {
			s.Power, s.RunGeneration = v1.PowerOn, 1
			s.Mounts = []v1.Mount{{Source: "/srv/link", Target: "/maps"}}
		})
		refused := func() {
			t.Helper()
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			require.Contains(t, w.get().Status.Message, "mount of /srv/link at /maps")
			require.Equal(t, "MountRefused", v1.FindCondition(w.get().Status.Conditions, v1.Started).Reason)
			require.Contains(t, w.events(v1.EventMessage)[len(w.events(v1.EventMessage))-1], "/srv/link")
			require.Equal(t, v1.PowerOn, w.get().Spec.Power)
		}
		allow := func(f func()) {
			refusal.refuse(nil)
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			f()
		}
		refused()
		require.Equal(t, 0, w.count("create", installer))
		require.Len(t, w.events(v1.EventMessage), 1)
		allow(func() { require.True(t, w.engine.Outside.State(installer).Running) })

		refusal.refuse(fmt.Errorf("mount of /srv/link at /maps: %w", runtime.ErrMountRefused))
		w.engine.Outside.Exit(installer, 0)
		refused()
		require.Equal(t, 0, w.count("create", server))
		allow(func() { w.want(v1.Running) })
		require.NotEqual(t, v1.False, v1.FindCondition(w.get().Status.Conditions, v1.Started).Status)

		refusal.refuse(fmt.Errorf("mount of /srv/link at /maps: %w", runtime.ErrMountRefused))
		w.engine.Outside.Exit(server, 1)
		refused()
		w.want(v1.Exit)
		require.Equal(t, 1, w.count("start", server))
		allow(func() { w.want(v1.Running) })
	})
}

// TestInstallerHasMounts changes the mounts of a container
// between the creation of its installer and its start.
func TestInstallerHasMounts(t *testing.T) {
	live(t, func(w *world) {
		agree := w.refuse("start", installer, runtime.ErrMountMissing) // as an engine that does not find its pins
		w.create(nil)
		time.Sleep(time.Minute)
		require.Greater(t, w.count("create", installer), 1)
		agree()
		time.Sleep(10 * time.Minute)
		require.True(t, w.engine.Outside.State(installer).Running)
	})
}

// TestRefusedMountDuringStart: the container of a start vanishes, and its mount is refused for
// a while. The start that follows is no refused one.
func TestRefusedMountDuringStart(t *testing.T) {
	live(t, func(w *world) {
		refusal := &pins{}
		w.rec.Mounts = refusal
		w.installed(func(s *v1.ContainerSpec) { s.Mounts = []v1.Mount{{Source: "/srv/link", Target: "/maps"}} })
		w.console.held.Store(true)
		w.change(on)
		w.want(v1.Starting)
		refusal.refuse(runtime.ErrMountRefused)
		w.engine.Outside.Vanish(server)
		started := func() string {
			return v1.FindCondition(w.want(v1.Starting).Status.Conditions, v1.Started).Reason
		}
		require.Equal(t, "MountRefused", started())
		refusal.refuse(nil)
		time.Sleep(10 * time.Minute)
		require.True(t, w.engine.Outside.State(server).Running)
		require.Equal(t, "Starting", started())
	})
}
