package container_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/controller/container"
	"berth/runtime"
	"berth/store"
)

func TestCrashBackoffAndReset(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		for i, wait := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
			w.engine.Outside.Exit(server, 1)
			c := w.want(v1.Exit)
			require.Equal(t, wait*time.Second, c.Status.NextRetryAt.Sub(c.Status.Since), "crash %d", i+1)
			time.Sleep(wait*time.Second - time.Second)
			w.want(v1.Exit)
			time.Sleep(2 * time.Second)
			c = w.want(v1.Running)
			require.Equal(t, i+1, c.Status.RestartCount)
			require.Nil(t, c.Status.NextRetryAt)
		}
		time.Sleep(10 * time.Minute)
		w.engine.Outside.Exit(server, 1)
		c := w.want(v1.Exit)
		require.Equal(t, 10*time.Second, c.Status.NextRetryAt.Sub(c.Status.Since))

		w.change(on) // a request waits for no backoff, and resets the count
		require.Zero(t, w.want(v1.Running).Status.RestartCount)
	})
}

func TestKillEndsCrashLoop(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		w.engine.Outside.Exit(server, 1)
		w.change(kill)
		time.Sleep(time.Hour)
		w.want(v1.Exit)
		require.Equal(t, 1, w.count("start", server))
	})
}

func TestRestartPolicies(t *testing.T) {
	for _, tc := range []struct {
		mode string
		code int
		want v1.Phase
	}{
		{v1.RestartNever, 0, v1.Exit}, {v1.RestartNever, 1, v1.Exit},
		{v1.RestartOnFailure, 0, v1.Exit}, {v1.RestartOnFailure, 1, v1.Running},
		{v1.RestartAlways, 0, v1.Running}, {v1.RestartAlways, 1, v1.Running},
	} {
		live(t, func(w *world) {
			w.installed(func(s *v1.ContainerSpec) { s.RestartPolicy.Mode = tc.mode })
			w.change(on)
			w.engine.Outside.Exit(server, tc.code)
			c := w.want(v1.Exit)
			require.Equal(t, tc.code, *c.Status.ExitCode)
			time.Sleep(time.Minute)
			require.Equal(t, tc.want, w.get().Status.Phase, "%s after %d", tc.mode, tc.code)
			require.Equal(t, v1.PowerOn, c.Spec.Power)
		})
	}
}

func TestOutOfMemory(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		w.engine.Outside.OOM(server)
		c := w.want(v1.Exit)
		require.True(t, c.Status.OOMKilled)
		require.Contains(t, c.Status.Message, "memory")
	})
}

// TestProcessOutOfMemory requires that the kill of a process is reported when it happens, once,
// and not as the cause of an exit that comes later.
func TestProcessOutOfMemory(t *testing.T) {
	for _, end := range []func(w *world){
		func(w *world) { w.change(off) },
		func(w *world) { w.change(kill) },
		func(w *world) { w.engine.Outside.Exit(server, 1) },
	} {
		live(t, func(w *world) {
			w.installed(nil)
			w.change(on)
			w.engine.Outside.OOMInside(server)
			synctest.Wait()
			require.Empty(t, w.events(v1.EventMessage), "it may be the end of the run")
			time.Sleep(3 * time.Second)
			w.want(v1.Running)
			require.Equal(t, []string{"the container used up its memory, and the kernel killed one of its processes; the run goes on"}, w.events(v1.EventMessage))
			time.Sleep(time.Hour)
			end(w)
			c := w.want(v1.Exit)
			require.False(t, c.Status.OOMKilled)
			require.NotContains(t, c.Status.Message, "memory")
			require.NotEqual(t, v1.ReasonOutOfMemory, v1.FindCondition(c.Status.Conditions, v1.Started).Reason)
			require.Len(t, w.events(v1.EventMessage), 1)
		})
	}
	live(t, func(w *world) { // a kill that ends the run
		w.installed(nil)
		w.change(on)
		w.engine.Outside.OOMInside(server)
		w.engine.Outside.Exit(server, 137)
		require.True(t, w.want(v1.Exit).Status.OOMKilled)
		require.Equal(t, []string{"the container ran out of memory"}, w.events(v1.EventMessage))
	})
}

// TestRefusedSpecKeepsTheContainer requires that a container is removed only when the engine
// accepts the spec of the next one, and its image is on the host.
func TestRefusedSpecKeepsTheContainer(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		before := w.engine.Outside.State(server).ContainerID
		w.change(func(s *v1.ContainerSpec) { s.Limits.Memory = 1 << 20 })
		c := w.get()
		require.Equal(t, before, w.engine.Outside.State(server).ContainerID)
		require.Contains(t, c.Status.Message, "memory is below 6 MiB")
		require.Equal(t, "RemoveServerFailed", v1.FindCondition(c.Status.Conditions, v1.Reconciled).Reason)

		w.engine.Outside.RefusePull("gone", runtime.ErrImageNotFound)
		w.change(func(s *v1.ContainerSpec) { s.Limits.Memory, s.Image = 0, "gone" })
		time.Sleep(time.Minute)
		w.get()
		require.Equal(t, before, w.engine.Outside.State(server).ContainerID)
		w.change(func(s *v1.ContainerSpec) { s.Image, s.Workdir = "i", "/w" })
		time.Sleep(time.Minute)
		w.get()
		require.NotEqual(t, before, w.engine.Outside.State(server).ContainerID)
	})
}

// TestStopSignalOfTheImage requires that a spec without a stop signal has that of its image.
func TestStopSignalOfTheImage(t *testing.T) {
	require.Equal(t, "SIGINT", container.StopSignal(v1.ContainerSpec{}, runtime.State{StopSignal: "SIGINT"}))
	require.Equal(t, "SIGQUIT", container.StopSignal(v1.ContainerSpec{Stop: v1.Stop{Signal: "SIGQUIT"}}, runtime.State{StopSignal: "SIGINT"}))
	require.Equal(t, "SIGTERM", container.StopSignal(v1.ContainerSpec{}, runtime.State{}))
}

// TestOutOfMemoryReportedLate: the engine may report it after the exit. Then only
// the status is corrected: the same exit, the same retry, no second event.
func TestOutOfMemoryReportedLate(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		w.engine.Outside.Exit(server, 137)
		before := w.want(v1.Exit).Status
		require.False(t, before.OOMKilled)
		w.engine.Outside.OOM(server)
		after := w.want(v1.Exit).Status
		require.True(t, after.OOMKilled)
		require.Equal(t, "the container ran out of memory", after.Message)
		before.OOMKilled, before.Message, before.Totals.OOMKills = after.OOMKilled, after.Message, 1
		before.Conditions = v1.SetCondition(before.Conditions, v1.Condition{Type: v1.Started, Status: v1.False,
			Reason: v1.ReasonOutOfMemory, Message: after.Message}, time.Now())
		require.Equal(t, before, after)
		require.Equal(t, []string{after.Message}, w.events(v1.EventMessage))
		time.Sleep(time.Minute)
		require.False(t, w.want(v1.Running).Status.OOMKilled, "that was the run before")
	})
}

// TestChildOutOfMemoryReportedLate: a run that continued and exited with 0 has only
// the flag. The message of the container stays.
func TestChildOutOfMemoryReportedLate(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		w.engine.Outside.Exit(server, 0)
		w.want(v1.Exit)
		require.NoError(t, w.store.Update(func(tx *store.Tx) error {
			return store.Containers.SetStatus(tx, "mc", func(s *v1.ContainerStatus) { s.Message = "something else" })
		}))
		w.engine.Outside.OOM(server)
		c := w.want(v1.Exit)
		require.True(t, c.Status.OOMKilled)
		require.Equal(t, "something else", c.Status.Message)
		require.Empty(t, w.events(v1.EventMessage))
	})
}

// TestLateReportIsNotObservedGeneration: a client that requested a start would take
// an exit with the new observed_generation for its result.
func TestLateReportIsNotObservedGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.run()
		w.installed(nil)
		w.change(on)
		w.engine.Outside.Exit(server, 137)
		w.want(v1.Exit)
		stop()
		w.change(on)
		w.engine.Outside.OOM(server)
		inspects := 0
		w.engine.Outside.Fail(func(op string, _ runtime.Name) error { // the next step does not follow
			if op == "inspect" {
				inspects++
			}
			if inspects > 1 {
				return runtime.ErrUnavailable
			}
			return nil
		})
		_, err := w.rec.Reconcile(t.Context(), "mc")
		require.ErrorIs(t, err, runtime.ErrUnavailable)
		c := w.want(v1.Exit)
		require.True(t, c.Status.OOMKilled)
		require.Less(t, c.Status.ObservedGeneration, c.Meta.Generation)
	})
}

// TestDrift changes containers from outside, with the daemon up and down.
func TestDrift(t *testing.T) {
	for _, up := range []bool{true, false} {
		for name, tc := range map[string]struct {
			power   v1.Power
			outside func(w *world)
			soon    v1.Phase // before any backoff
			later   v1.Phase
		}{
			"removed":             {v1.PowerOn, func(w *world) { w.engine.Outside.Vanish(server) }, v1.Running, v1.Running},
			"killed":              {v1.PowerOn, func(w *world) { w.engine.Outside.Exit(server, 137) }, v1.Exit, v1.Running},
			"stopped":             {v1.PowerOn, func(w *world) { w.engine.Outside.Exit(server, 0) }, v1.Exit, v1.Exit},
			"killed and removed":  {v1.PowerOn, func(w *world) { w.engine.Outside.Exit(server, 137); synctest.Wait(); w.engine.Outside.Vanish(server) }, v1.Running, v1.Running},
			"paused":              {v1.PowerOn, func(w *world) { w.engine.Outside.Pause(server) }, v1.Running, v1.Running},
			"disconnected":        {v1.PowerOn, func(w *world) { w.engine.Outside.Detach(server) }, v1.Running, v1.Running},
			"started, wanted off": {v1.PowerOff, func(w *world) { _ = w.engine.Outside.StartOutside(server) }, v1.Exit, v1.Exit},
			"removed while off":   {v1.PowerOff, func(w *world) { w.engine.Outside.Vanish(server) }, v1.Exit, v1.Exit},
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					stop := w.run()
					w.installed(nil)
					w.change(on)
					if tc.power == v1.PowerOff {
						w.change(off)
					}
					if !up {
						stop()
					}
					tc.outside(w)
					if !up {
						stop = w.run()
					}
					w.want(tc.soon)
					require.Equal(t, tc.soon == v1.Running, w.engine.Outside.State(server).Running)
					require.False(t, w.engine.Outside.State(server).Paused || w.engine.Outside.State(server).Detached)
					require.NotEmpty(t, w.engine.Outside.State(server).ContainerID, "a container exists")
					time.Sleep(time.Minute)
					w.want(tc.later)
					stop()
				})
			})
		}
	}
}

// TestTakenPortNamesTheOtherAddress requires that a start that fails because the same port of
// another address is bound names that claim.
func TestTakenPortNamesTheOtherAddress(t *testing.T) {
	live(t, func(w *world) {
		require.NoError(t, w.store.Update(func(tx *store.Tx) error {
			for _, ip := range []string{"0.0.0.0", "10.0.0.1", "10.0.0.2"} {
				id := v1.PoolID(ip, "tcp")
				if err := store.Pools.Create(tx, id, v1.PoolSpec{IP: ip, Protocol: "tcp"}); err != nil {
					return err
				}
				if err := store.SetClaim(tx, id, 80, v1.Claim{Container: "of-" + ip}); err != nil {
					return err
				}
			}
			return nil
		}))
		w.engine.Outside.Host().TakePort("10.0.0.1", 80, "tcp")
		w.installed(func(s *v1.ContainerSpec) { s.Ports = []v1.Port{{IP: "10.0.0.1", Port: 80, Protocol: "tcp"}} })
		w.change(on)
		require.Regexp(t, `port is taken: .*; the same port is bound as 0\.0\.0\.0:80 by container of-0\.0\.0\.0$`, w.want(v1.Exit).Status.Message)
	})
}

func TestDaemonRestartRestartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.run()
		w.installed(nil)
		w.change(on)
		before := w.engine.Outside.State(server)
		stop()
		stop = w.run()
		time.Sleep(time.Hour)
		w.want(v1.Running)
		require.Equal(t, before, w.engine.Outside.State(server))
		stop()
	})
}

func TestHostBootRestartsRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.run()
		w.installed(func(s *v1.ContainerSpec) { s.RestartPolicy.Mode = v1.RestartNever })
		w.change(on)
		stop()
		w.engine.Outside.Exit(server, 0) // the host's shutdown ended it
		w.rec.BootID = "next"
		stop = w.run()
		w.want(v1.Running)
		stop()
	})
}

func TestUnreachableEngineChangesNoState(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		n := len(w.phases())
		w.engine.Outside.Host().Down()
		time.Sleep(10 * time.Minute)
		w.want(v1.Running)
		w.change(off) // requests are accepted during the outage
		w.engine.Outside.Host().Up()
		time.Sleep(6 * time.Minute)
		w.want(v1.Exit)
		require.Equal(t, []string{"stopping", "exit"}, w.phases()[n:])
	})
}

func TestStartRetriedWhilePortIsTaken(t *testing.T) {
	live(t, func(w *world) {
		w.installed(func(s *v1.ContainerSpec) {
			s.Ports = []v1.Port{{IP: "127.0.0.1", Port: 25565, Protocol: "tcp"}}
			s.RestartPolicy.Mode = v1.RestartNever
		})
		w.engine.Outside.Host().TakePort("127.0.0.1", 25565, "tcp")
		w.change(on)
		c := w.want(v1.Exit)
		require.Equal(t, "PortTaken", v1.FindCondition(c.Status.Conditions, v1.Started).Reason)
		require.NotNil(t, c.Status.NextRetryAt)
		w.engine.Outside.Host().FreePort("127.0.0.1", 25565, "tcp")
		time.Sleep(11 * time.Second)
		w.want(v1.Running)
	})
}

// TestStartFailureMessage: the message begins with the cause, so that a narrow table
// shows it.
func TestStartFailureMessage(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.refuse("start", server, &runtime.CallError{Call: "start", Object: "server container mc", Err: fmt.Errorf("%w: by x", runtime.ErrPortTaken)})
		w.change(on)
		require.Equal(t, "cannot start: port is taken: by x", w.want(v1.Exit).Status.Message)
	})
}

func TestMissingVolumeRefusesStart(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.engine.Outside.Host().LoseDirectory("/volumes/v")
		w.change(on)
		c := w.want(v1.Exit)
		require.Equal(t, "VolumeMissing", v1.FindCondition(c.Status.Conditions, v1.Started).Reason)
		w.engine.Outside.Host().RestoreDirectory("/volumes/v")
		time.Sleep(11 * time.Second)
		w.want(v1.Running)
	})
}

func TestBadCommandExitsWith127(t *testing.T) {
	live(t, func(w *world) {
		w.installed(func(s *v1.ContainerSpec) { s.StartupCommand = "nonsense --now" })
		w.engine.Outside.Host().BreakProgram("nonsense")
		w.change(on)
		c := w.want(v1.Exit)
		require.Equal(t, 127, *c.Status.ExitCode)
		require.Equal(t, "BadCommand", v1.FindCondition(c.Status.Conditions, v1.Started).Reason)
		require.NotNil(t, c.Status.NextRetryAt)
	})
}

func TestBrokenRecordBlocksNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.engine.Outside.Fail(func(_ string, n runtime.Name) error {
			if n.ID == "bad" {
				panic("broken")
			}
			return nil
		})
		defer w.run()()
		require.NoError(t, w.store.Update(func(tx *store.Tx) error {
			return store.Containers.Create(tx, "bad", v1.ContainerSpec{Image: "i", VolumeID: "b", InstallGeneration: 1})
		}))
		w.installed(nil)
		w.change(on)
		w.want(v1.Running)
	})
}

// TestRestartFromOutsideIsReported: the exit before was not observed.
func TestRestartFromOutsideIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.run()
		w.installed(nil)
		w.change(on)
		stop()
		w.engine.Outside.Exit(server, 1)
		require.NoError(t, w.engine.Outside.StartOutside(server))
		stop = w.run()
		defer func() { stop() }()
		c := w.want(v1.Running)
		require.Equal(t, []string{"running", "starting", "running"}, w.phases()[3:])
		require.WithinDuration(t, w.engine.Outside.State(server).StartedAt, *c.Status.StartedAt, 0)
	})
}

// TestStartFromOutsideKeepsNewSpec: an apply to an exited container waits for no
// run.
func TestStartFromOutsideKeepsNewSpec(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.run()
		w.installed(nil)
		w.change(on)
		w.engine.Outside.Exit(server, 0)
		w.want(v1.Exit)
		stop()
		w.change(func(s *v1.ContainerSpec) { s.Workdir = "/new" })
		require.NoError(t, w.engine.Outside.StartOutside(server))
		stop = w.run()
		defer func() { stop() }()
		w.want(v1.Running)
		require.Equal(t, "/new", w.engine.Outside.Spec(server).Workdir)
		require.Equal(t, []string{"exit", "stopping", "exit", "starting", "running"}, w.phases()[4:])
	})
}

// TestStartKeepsNewSpec: the spec changes after it was loaded and before the start
// is recorded.
func TestStartKeepsNewSpec(t *testing.T) {
	for name, begin := range map[string]func(w *world){
		"by the policy": func(*world) {},
		"from outside":  func(w *world) { _ = w.engine.Outside.StartOutside(server) },
	} {
		t.Run(name, func(t *testing.T) {
			live(t, func(w *world) {
				w.installed(nil)
				w.change(on)
				w.engine.Outside.Exit(server, 1)
				due := *w.want(v1.Exit).Status.NextRetryAt
				time.Sleep(time.Until(due) - 1)
				w.engine.Outside.Fail(func(string, runtime.Name) error {
					w.engine.Outside.Fail(nil)
					return w.store.Update(func(tx *store.Tx) error {
						return store.Containers.SetSpec(tx, "mc", func(s *v1.ContainerSpec) error { s.Workdir = "/new"; return nil })
					})
				})
				begin(w)
				time.Sleep(time.Minute)
				w.want(v1.Running)
				require.Equal(t, "/new", w.engine.Outside.Spec(server).Workdir)
			})
		})
	}
}
