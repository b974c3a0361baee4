package container_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime"
	"berth/store"
)

// asked returns a change with who requested it.
func asked(by string, change func(*v1.ContainerSpec)) func(*v1.ContainerSpec) {
	return func(s *v1.ContainerSpec) {
		change(s)
		s.RequestedBy = v1.Actor{TokenID: by, Via: v1.ViaHTTP}
	}
}

// actors returns each state event so far with its actor, and "controller" for none.
func actors(w *world) (list []string) {
	w.t.Helper()
	events, err := store.ReadEvents(w.store.Read(), 0, 1000)
	for _, e := range events {
		if e.Event == v1.EventState {
			list = append(list, e.Data+" "+e.Actor.String())
		}
		require.NotEmpty(w.t, e.Actor.Via, "every event has an actor")
	}
	require.NoError(w.t, err)
	return list
}

// TestActors lets each transition happen by request, and by itself.
func TestActors(t *testing.T) {
	live(t, func(w *world) {
		w.installed(func(s *v1.ContainerSpec) { s.RequestedBy = v1.Actor{TokenID: "ann", Via: v1.ViaHTTP} })
		w.change(asked("bob", on))
		w.engine.Outside.Exit(server, 1) // a crash, and a retry
		time.Sleep(time.Minute)
		w.want(v1.Running)
		w.change(asked("cid", on)) // a restart
		w.want(v1.Running)
		w.change(asked("dan", off))
		w.want(v1.Exit)
		require.NoError(t, w.engine.Outside.StartOutside(server)) // drift
		w.want(v1.Exit)
		w.change(asked("eve", on))
		w.change(asked("fay", kill))
		w.want(v1.Exit)
		w.change(asked("gus", func(s *v1.ContainerSpec) { s.InstallGeneration++ }))
		w.engine.Outside.Exit(installer, 1)
		w.want(v1.Failed)
		require.NoError(t, w.store.Update(func(tx *store.Tx) error {
			err := store.Containers.SetSpec(tx, "mc", func(s *v1.ContainerSpec) error {
				s.RequestedBy = v1.Actor{TokenID: "hal", Via: v1.ViaHTTP}
				return nil
			})
			return errors.Join(err, store.Containers.Delete(tx, "mc"))
		}))
		require.True(t, w.gone())
		require.Equal(t, []string{
			"installing ann", "ready ann", "starting bob", "running bob", "exit controller", "starting controller", "running controller",
			"stopping cid", "exit cid", "starting cid", "running cid", "stopping dan", "exit dan", "stopping controller", "exit controller",
			"starting eve", "running eve", "exit fay", "installing gus", "failed gus", "deleting hal"}, actors(w))
	})
}

// TestActorsOfFailedStart: the request stands in the exit of the start that it asked
// for, and not in those of the retries.
func TestActorsOfFailedStart(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		agree := w.refuse("start", server, runtime.ErrPortTaken)
		w.change(asked("bob", on))
		w.want(v1.Exit)
		time.Sleep(11 * time.Second)
		agree()
		time.Sleep(time.Minute)
		w.want(v1.Running)
		w.change(asked("cid", on))
		w.console.held.Store(true)
		w.change(asked("dan", on))
		w.engine.Outside.Exit(server, 1) // while starting
		w.want(v1.Exit)
		require.Equal(t, []string{"installing controller", "ready controller", "starting bob", "exit bob", "starting controller", "exit controller",
			"starting controller", "running controller", "stopping cid", "exit cid", "starting cid", "running cid",
			"stopping dan", "exit dan", "starting dan", "exit controller"}, actors(w))
	})
}
