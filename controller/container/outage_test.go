package container_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// TestGracefulEngineRestart stops the engine as Docker stops: it takes no new
// connection, then stops each container while its event stream is open, then
// ends. What it stopped runs again, however cleanly it exited.
func TestGracefulEngineRestart(t *testing.T) {
	for _, answers := range []bool{true, false} { // over connections that are open
		for _, code := range []int{0, 143} {
			t.Run(fmt.Sprintf("answers=%t code=%d", answers, code), func(t *testing.T) {
				live(t, func(w *world) {
					host := w.engine.Outside.Host()
					w.installed(func(s *v1.ContainerSpec) { s.RestartPolicy.Mode = v1.RestartNever })
					w.change(on)
					time.Sleep(time.Hour)
					if answers {
						host.Shutdown()
					} else {
						host.ShutdownSilently()
					}
					time.Sleep(9 * time.Second) // its stop timeout is nearly over when it exits
					w.engine.Outside.Exit(server, code)
					synctest.Wait()
					time.Sleep(20 * time.Second) // others are stopped
					w.want(v1.Running)
					host.Down()
					time.Sleep(10 * time.Second)
					host.Boot()
					time.Sleep(20 * time.Second)
					c := w.want(v1.Running)
					require.True(t, w.engine.Outside.State(server).Running)
					require.EqualValues(t, 1, c.Status.RestartCount)
					require.Equal(t, []string{"exit", "starting", "running"}, w.phases()[4:])
				})
			})
		}
	}
}

// TestEngineRestartsWhileBerthIsAway: nobody saw the event stream end.
func TestEngineRestartsWhileBerthIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.run()
		w.installed(func(s *v1.ContainerSpec) { s.RestartPolicy.Mode = v1.RestartNever })
		w.change(on)
		stop()
		host := w.engine.Outside.Host()
		host.Shutdown()
		w.engine.Outside.Exit(server, 0)
		host.Down()
		time.Sleep(time.Minute)
		host.Boot()
		w.rec.ForgetMemory()
		stop = w.run()
		w.want(v1.Running)
		stop()
	})
}

// TestInstallDuringGracefulRestart: an installer that exits with 0 because
// the engine stopped it has installed nothing.
func TestInstallDuringGracefulRestart(t *testing.T) {
	live(t, func(w *world) {
		w.create(nil)
		host := w.engine.Outside.Host()
		host.Shutdown()
		w.engine.Outside.Exit(installer, 0)
		time.Sleep(10 * time.Second)
		w.want(v1.Installing)
		host.Down()
		host.Boot()
		time.Sleep(20 * time.Second)
		w.want(v1.Installing)
		require.True(t, w.engine.Outside.State(installer).Running, "it begins anew")
		w.engine.Outside.Exit(installer, 0)
		w.want(v1.Ready)
		require.Equal(t, 2, w.count("start", installer))
	})
}

// TestStopFromOutsideIsExit: the engine is healthy, so the policy decides.
func TestStopFromOutsideIsExit(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		w.engine.Outside.Exit(server, 0)
		w.want(v1.Exit)
		w.engine.Outside.Host().Shutdown()
		w.engine.Outside.Host().Down()
		time.Sleep(time.Minute)
		w.engine.Outside.Host().Boot()
		time.Sleep(10 * time.Minute)
		w.want(v1.Exit)
	})
}

// TestEngineRestartKeepingContainers: after an engine restarted and kept its
// containers, a later exit is still attributed correctly.
func TestEngineRestartKeepingContainers(t *testing.T) {
	live(t, func(w *world) {
		host := w.engine.Outside.Host()
		w.installed(nil)
		w.change(on)
		started := w.engine.Outside.State(server).StartedAt
		for range 2 {
			host.Down()
			host.Boot()
			time.Sleep(time.Minute)
			c := w.want(v1.Running)
			require.Equal(t, started, w.engine.Outside.State(server).StartedAt)
			require.NotEmpty(t, c.Status.Engine)
		}
		w.engine.Outside.Exit(server, 0)
		w.want(v1.Exit)
		time.Sleep(time.Hour)
		w.want(v1.Exit)
	})
}

// TestExitBeforeOutage: an exit that was confirmed is recorded late, because its
// last output is read first.
func TestExitBeforeOutage(t *testing.T) {
	live(t, func(w *world) {
		host := w.engine.Outside.Host()
		host.Nameless()
		w.installed(func(s *v1.ContainerSpec) { s.RestartPolicy.Mode = v1.RestartNever })
		w.change(on)
		w.console.unread.Store(true)
		w.engine.Outside.Exit(server, 0)
		w.want(v1.Running)
		time.Sleep(time.Second)
		_, err := w.rec.Reconcile(t.Context(), "mc") // the engine takes a connection after the exit
		require.NoError(t, err)
		host.Down()
		time.Sleep(time.Second)
		host.Boot()
		time.Sleep(time.Minute)
		w.want(v1.Exit)
	})
}

// TestExitAfterOutage: a container that exits after the outage exited by itself.
func TestExitAfterOutage(t *testing.T) {
	for _, nameless := range []bool{true, false} {
		live(t, func(w *world) {
			host := w.engine.Outside.Host()
			if nameless {
				host.Nameless()
			}
			w.installed(nil)
			w.change(on)
			host.Down()
			time.Sleep(time.Minute)
			host.Boot()
			time.Sleep(10 * time.Minute) // the event stream is back
			w.engine.Outside.Exit(server, 0)
			time.Sleep(time.Hour)
			w.want(v1.Exit)
		})
	}
}

func TestRunRestartsAfterEngineOutage(t *testing.T) {
	for _, mode := range []string{v1.RestartNever, v1.RestartOnFailure} {
		live(t, func(w *world) {
			w.installed(func(s *v1.ContainerSpec) { s.RestartPolicy.Mode = mode })
			w.change(on)
			w.engine.Outside.Host().Down()
			time.Sleep(5 * time.Second)
			w.engine.Outside.Exit(server, 0)
			time.Sleep(5 * time.Second)
			w.engine.Outside.Host().Boot()
			time.Sleep(10 * time.Second)
			w.want(v1.Running)
			require.Equal(t, []string{"running", "exit", "starting", "running"}, w.phases()[3:])
		})
	}
}

func TestInstallRestartsAfterEngineOutage(t *testing.T) {
	live(t, func(w *world) {
		w.create(nil)
		w.engine.Outside.Host().Down()
		time.Sleep(5 * time.Second)
		w.engine.Outside.Exit(installer, 137)
		w.engine.Outside.Host().Boot()
		time.Sleep(10 * time.Second)
		w.want(v1.Installing)
		require.True(t, w.engine.Outside.State(installer).Running)
		w.engine.Outside.Exit(installer, 0)
		w.want(v1.Ready)
	})
}
