package container_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	. "berth/controller/container"
	"berth/runtime"
	"berth/store"
)

// condition returns the condition of a type of mc.
func (w *world) condition(kind string) v1.Condition {
	w.t.Helper()
	return v1.FindCondition(w.get().Status.Conditions, kind)
}

// TestLongStart: the engine needs longer for a start than one call takes.
func TestLongStart(t *testing.T) {
	live(t, func(w *world) {
		w.installed(func(s *v1.ContainerSpec) { s.StartPattern, s.StartTimeout = "p", v1.Duration(20*time.Minute) })
		w.console.held.Store(true)
		w.engine.Outside.HoldStart(server)
		w.change(on)
		time.Sleep(10 * time.Minute)
		c := w.want(v1.Starting)
		started := w.condition(v1.Started)
		require.Equal(t, v1.Unknown+" StartWaits", started.Status+" "+started.Reason)
		require.Contains(t, started.Message, "the image is being pulled")
		require.Equal(t, started.Message, c.Status.Message)
		require.Nil(t, v1.Deadline(c))
		require.Zero(t, c.Status.RestartCount)
		require.Zero(t, c.Status.Totals)
		require.Equal(t, c.Meta.Generation, c.Status.ObservedGeneration)
		require.Equal(t, []string{"installing", "ready", "starting"}, w.phases())

		w.engine.Outside.ReleaseStart(server)
		c = w.want(v1.Starting)
		require.Equal(t, "Starting", w.condition(v1.Started).Reason)
		require.Empty(t, c.Status.Message)
		require.WithinDuration(t, time.Now().Add(20*time.Minute), *v1.Deadline(c), 5*time.Second, "a pull does not count")
		starts := w.count("start", server)
		w.console.held.Store(false)
		time.Sleep(time.Minute)
		w.want(v1.Running)
		require.Equal(t, starts, w.count("start", server), "a run that began is not started")
	})
}

func TestLongStartOfInstaller(t *testing.T) {
	live(t, func(w *world) {
		release := w.refuse("start", installer, runtime.ErrStarting)
		w.create(nil)
		time.Sleep(2 * time.Minute)
		c := w.want(v1.Installing)
		require.Equal(t, "StartWaits", w.condition(v1.Installed).Reason)
		require.Equal(t, w.condition(v1.Installed).Message, c.Status.Message)
		release()
		time.Sleep(3 * time.Second)
		c = w.want(v1.Installing)
		require.Equal(t, "Installing", w.condition(v1.Installed).Reason)
		require.Empty(t, c.Status.Message)
		w.engine.Outside.Exit(installer, 0)
		w.want(v1.Ready)
	})
}

// TestLongStartIsTakenBack: without that, the engine would begin the run later.
func TestLongStartIsTakenBack(t *testing.T) {
	for name, end := range map[string]func(*v1.ContainerSpec){"stop": off, "kill": kill} {
		t.Run(name, func(t *testing.T) {
			live(t, func(w *world) {
				w.installed(nil)
				w.engine.Outside.HoldStart(server)
				w.change(on)
				w.want(v1.Starting)
				w.change(end)
				time.Sleep(3 * time.Second)
				w.want(v1.Exit)
				require.Equal(t, "NotStarted", w.condition(v1.Started).Reason)
				w.engine.Outside.ReleaseStart(server)
				time.Sleep(time.Minute)
				require.True(t, w.engine.Outside.State(server).StartedAt.IsZero())
			})
		})
	}
}

// TestNoRoom: nothing ran, so the policy does not matter.
func TestNoRoom(t *testing.T) {
	live(t, func(w *world) {
		w.installed(func(s *v1.ContainerSpec) { s.RestartPolicy.Mode = v1.RestartNever })
		release := w.refuse("start", server, fmt.Errorf("%w: 2 Insufficient memory", runtime.ErrNoRoom))
		w.change(on)
		c := w.want(v1.Exit)
		require.Equal(t, "NoRoom", w.condition(v1.Started).Reason)
		require.Equal(t, "cannot start: no machine has room: 2 Insufficient memory", c.Status.Message)
		require.NotNil(t, c.Status.NextRetryAt)
		require.Nil(t, c.Status.ExitCode)
		release()
		time.Sleep(11 * time.Second)
		w.want(v1.Running)
	})
}

func TestNoRoomForInstaller(t *testing.T) {
	live(t, func(w *world) {
		release := w.refuse("start", installer, runtime.ErrNoRoom)
		w.create(nil)
		time.Sleep(time.Minute)
		w.want(v1.Installing)
		require.Equal(t, "NoRoom", w.condition(v1.Reconciled).Reason)
		release()
		time.Sleep(6 * time.Minute)
		w.engine.Outside.Exit(installer, 0)
		w.want(v1.Ready)
	})
}

func TestPlanLongStart(t *testing.T) {
	starts := func(o *Observed) { fresh(o); o.Server.Starting = true }
	check(t, []row{
		{"it goes on", nil, is(v1.Starting), starts, StartServer},
		{"it is not wanted", off, is(v1.Starting), starts, KillServer},
		{"it was not recorded", off, is(v1.Exit), starts, KillServer},
		{"it has begun", nil, startingWith(v1.Condition{Type: v1.Started, Status: v1.Unknown, Reason: "StartWaits"}), nil, RecordBegun},
		{"an installation is wanted", func(s *v1.ContainerSpec) { s.InstallGeneration++ }, is(v1.Starting), starts, KillServer},
	})
}

// reaches returns the status and the reason of the condition MachineReachable.
func (w *world) reaches() string {
	w.t.Helper()
	c := w.condition(v1.MachineReachable)
	return c.Status + " " + c.Reason
}

const (
	unreachable = v1.Unknown + " " + v1.ReasonMachineUnreachable
	answers     = v1.True + " " + v1.ReasonAnswers
)

// TestMachineIsCutOff: the container may run on, so nothing is done to it.
func TestMachineIsCutOff(t *testing.T) {
	measured(t, func(w *world, count func(string) float64) {
		w.installed(nil)
		w.change(on)
		before, ops := w.want(v1.Running), len(w.engine.Outside.Ops())
		w.engine.Outside.Lose(server)
		time.Sleep(time.Hour)
		c := w.want(v1.Running)
		require.Equal(t, unreachable, w.reaches())
		require.Equal(t, w.condition(v1.MachineReachable).Message, c.Status.Message)
		require.Contains(t, c.Status.Message, "machine does not answer")
		require.Equal(t, v1.ReasonMachineUnreachable, v1.Unready(c.Spec, c.Status))
		require.Len(t, w.engine.Outside.Ops(), ops, "nothing is done")

		w.engine.Outside.Find(server)
		c = w.want(v1.Running)
		require.Equal(t, answers, w.reaches())
		require.Empty(t, c.Status.Message)
		require.Empty(t, v1.Unready(c.Spec, c.Status))
		require.Equal(t, before.Status.StartedAt, c.Status.StartedAt)
		require.Equal(t, before.Status.ContainerID, c.Status.ContainerID)
		require.Zero(t, c.Status.RestartCount)
		require.Len(t, w.engine.Outside.Ops(), ops)
	})
}

// TestRequestsWaitForMachine: also a request for another run of a container whose first one goes on.
func TestRequestsWaitForMachine(t *testing.T) {
	for name, request := range map[string]func(*world){
		"stop":    func(w *world) { w.change(off) },
		"kill":    func(w *world) { w.change(kill) },
		"restart": func(w *world) { w.change(on) },
		"delete": func(w *world) {
			require.NoError(w.t, w.store.Update(func(tx *store.Tx) error { return store.Containers.Delete(tx, "mc") }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, func(w *world) {
				w.installed(nil)
				w.change(on)
				first := w.want(v1.Running)
				ops := len(w.engine.Outside.Ops())
				w.engine.Outside.Lose(server)
				request(w)
				time.Sleep(time.Hour)
				c := w.want(v1.Running)
				require.True(t, c.Meta.Deleted || c.Status.ObservedGeneration < c.Meta.Generation)
				require.Len(t, w.engine.Outside.Ops(), ops)
				w.engine.Outside.Find(server)
				time.Sleep(time.Minute)
				switch name {
				case "delete":
					require.True(t, w.gone())
				case "restart":
					require.True(t, w.want(v1.Running).Status.StartedAt.After(*first.Status.StartedAt))
				default:
					w.want(v1.Exit)
				}
			})
		})
	}
}

// TestMachineIsLostBetween: the engine reports it only to the call.
func TestMachineIsLostBetween(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		found := w.refuse("kill", server, runtime.ErrLost)
		w.change(kill)
		time.Sleep(time.Minute)
		w.want(v1.Running)
		require.Equal(t, "KillServerFailed", w.condition(v1.Reconciled).Reason)
		found()
		time.Sleep(6 * time.Minute)
		w.want(v1.Exit)
	})
}

// TestRunEndsWithItsMachine: the next one begins at once, whatever the policy.
func TestRunEndsWithItsMachine(t *testing.T) {
	for _, lost := range []bool{true, false} {
		live(t, func(w *world) {
			w.installed(func(s *v1.ContainerSpec) { s.RestartPolicy.Mode = v1.RestartNever })
			w.change(on)
			first := w.want(v1.Running)
			if lost {
				w.engine.Outside.Lose(server)
				require.Equal(t, unreachable, w.reaches())
			}
			w.engine.Outside.Interrupt(server)
			c := w.want(v1.Running)
			require.True(t, c.Status.StartedAt.After(*first.Status.StartedAt))
			require.Equal(t, cause{v1.Running, "MachineLost", 137}, causes(w)["exit"])
			require.Zero(t, c.Status.Crashes)
			require.Zero(t, c.Status.Totals.Crashes)
			require.Equal(t, 1, c.Status.RestartCount)
			if lost {
				require.Equal(t, answers, w.reaches())
			}
		})
	}
}

// TestStopBeforeMachineIsLost: a run that was asked to end is not started again.
func TestStopBeforeMachineIsLost(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		w.engine.Outside.Lose(server)
		w.change(off)
		w.engine.Outside.Interrupt(server)
		time.Sleep(time.Hour)
		w.want(v1.Exit)
	})
}

// TestInstallerEndsWithItsMachine: its exit code is no result, so the installation begins anew.
func TestInstallerEndsWithItsMachine(t *testing.T) {
	live(t, func(w *world) {
		w.create(nil)
		w.want(v1.Installing)
		w.engine.Outside.Lose(installer)
		time.Sleep(2 * time.Hour) // longer than an installation may take
		w.want(v1.Installing)
		require.Equal(t, unreachable, w.reaches())
		w.engine.Outside.Interrupt(installer)
		time.Sleep(time.Minute)
		w.want(v1.Installing)
		require.Equal(t, 2, w.count("start", installer))
		w.engine.Outside.Exit(installer, 0)
		w.want(v1.Ready)
	})
}
