package container_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	. "berth/controller/container"
	"berth/runtime"
	"berth/runtime/fake"
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

// afterRefusals returns just after an attempt, once the calls have been refused for an hour.
func (w *world) afterRefusals(call string, n runtime.Name) {
	time.Sleep(time.Hour)
	for before := w.count(call, n); w.count(call, n) == before; time.Sleep(time.Second) {
	}
}

// TestNoRoomForLong: nobody reports that a quota has room again.
func TestNoRoomForLong(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		release := w.refuse("start", server, runtime.ErrNoRoom)
		w.change(on)
		w.afterRefusals("start", server)
		w.want(v1.Exit)
		release()
		time.Sleep(RoomWait + time.Second)
		w.want(v1.Running)
	})
}

func TestNoRoomForInstaller(t *testing.T) {
	live(t, func(w *world) {
		release := w.refuse("start", installer, runtime.ErrNoRoom)
		w.create(nil)
		w.afterRefusals("start", installer)
		w.want(v1.Installing)
		require.Equal(t, "NoRoom", w.condition(v1.Reconciled).Reason)
		release()
		time.Sleep(RoomWait + time.Second)
		w.engine.Outside.Exit(installer, 0)
		w.want(v1.Ready)
	})
}

func TestPlanLongStart(t *testing.T) {
	starts := func(o *Observed) { fresh(o); o.Server.Starting = true }
	check(t, []row{
		{"it goes on", nil, is(v1.Starting), starts, RecordStart},
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

// TestMachineIsNamed: a container has the machine that it runs on, or ran on last.
func TestMachineIsNamed(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		require.Empty(t, w.get().Status.Machine)
		for _, machine := range []string{"n2", "n3"} {
			w.engine.Outside.Place(server, machine)
			w.change(on)
			require.Equal(t, machine, w.want(v1.Running).Status.Machine)
			w.change(kill)
			require.Equal(t, machine, w.want(v1.Exit).Status.Machine)
		}
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

// TestEvicted: a run that has to leave its machine is asked to exit as each stop asks, and the next one begins at
// once, unless it is evicted again.
func TestEvicted(t *testing.T) {
	live(t, func(w *world) {
		w.installed(func(s *v1.ContainerSpec) {
			s.RestartPolicy.Mode, s.Stop.Command = v1.RestartNever, "stop\n"
		})
		w.engine.OnInput = func(n runtime.Name, b []byte) {
			require.Equal(t, "stop\n", string(b))
			c, err := store.Containers.Get(w.store.Read(), "mc")
			require.NoError(t, err)
			require.Equal(t, v1.Stopping, c.Status.Phase)
			require.True(t, c.Spec.Power == v1.PowerOff || strings.Contains(c.Status.Message, "has to leave its machine"))
			go w.engine.Outside.Exit(n, 0)
		}
		w.change(on)
		first := w.want(v1.Running)
		w.engine.Outside.Evict(server)
		time.Sleep(3 * time.Second)
		c := w.want(v1.Running)
		require.Equal(t, 1, w.count("input", server))
		require.True(t, c.Status.StartedAt.After(*first.Status.StartedAt))
		require.Equal(t, cause{v1.Stopping, "MachineLost", 0}, causes(w)["exit"])
		require.Zero(t, c.Status.Totals.Crashes)
		require.Equal(t, 1, c.Status.RestartCount)

		w.engine.Outside.Evict(server)
		time.Sleep(3 * time.Second)
		c = w.want(v1.Exit)
		require.NotNil(t, c.Status.NextRetryAt)
		time.Sleep(time.Minute)
		w.want(v1.Running)

		w.engine.Outside.Evict(server)
		w.change(off)
		time.Sleep(time.Minute)
		w.want(v1.Exit)
	})
}

// TestEvictedAgainAndAgain: a machine under pressure evicts what begins there again, so the runs back off.
func TestEvictedAgainAndAgain(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		for range 20 {
			if w.get().Status.Phase == v1.Running {
				w.engine.Outside.Interrupt(server)
			}
			time.Sleep(time.Minute)
		}
		require.Less(t, w.count("start", server), 10)
		time.Sleep(6 * time.Minute)
		w.want(v1.Running)
	})
}

// TestWaitsForRoom: the engine goes on by itself once a machine has room, and the reason is reported meanwhile.
func TestWaitsForRoom(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.engine.Outside.HoldStart(server)
		release := w.refuse("start", server, fmt.Errorf("%w: %w: 2 Insufficient memory", runtime.ErrStarting, runtime.ErrNoRoom))
		w.change(on)
		time.Sleep(time.Hour)
		c := w.want(v1.Starting)
		require.Equal(t, v1.Unknown+" NoRoom", w.condition(v1.Started).Status+" "+w.condition(v1.Started).Reason)
		require.Contains(t, c.Status.Message, "2 Insufficient memory")
		require.Zero(t, c.Status.Totals)
		release()
		w.engine.Outside.ReleaseStart(server)
		time.Sleep(3 * time.Second)
		w.want(v1.Running)
		require.Equal(t, "Running", w.condition(v1.Started).Reason)
	})
}

// TestLimitsWithoutRoom: what the machine of a run cannot give holds for the next one.
func TestLimitsWithoutRoom(t *testing.T) {
	live(t, func(w *world) {
		w.installed(func(s *v1.ContainerSpec) { s.Limits.Memory = 1 << 30 })
		w.change(on)
		w.want(v1.Running)
		release := w.refuse("update", server, runtime.ErrNoRoom)
		w.change(func(s *v1.ContainerSpec) { s.Limits.Memory = 2 << 30 })
		time.Sleep(time.Hour)
		require.Equal(t, "False Refused", w.condition(v1.LimitsApplied).Status+" "+w.condition(v1.LimitsApplied).Reason)
		require.Contains(t, w.condition(v1.LimitsApplied).Message, "no machine has room")
		require.Equal(t, 1, w.count("update", server))
		release()
		w.change(off)
		w.want(v1.Exit)
		require.Equal(t, int64(2<<30), w.engine.Outside.State(server).Live.Memory)
		require.Equal(t, v1.True, w.condition(v1.LimitsApplied).Status)
	})
}

// TestImageThatTheRegistryHasRemoved: a machine does not find the digest that the tag named. The tag is
// resolved again, and the container made from what it names now.
func TestImageThatTheRegistryHasRemoved(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		before := w.engine.Outside.State(server)
		fake.PushImage(w.engine.Outside, "i")
		release := w.refuse("start", server, fmt.Errorf("%w: i@sha256:1", runtime.ErrImageNotFound))
		w.change(on)
		enough := time.Now().Add(time.Minute)
		for w.engine.Outside.State(server).ContainerID == before.ContainerID && time.Now().Before(enough) {
			time.Sleep(time.Second)
		}
		release()
		time.Sleep(time.Minute)
		c := w.want(v1.Running)
		require.NotEqual(t, before.ImageID, w.engine.Outside.State(server).ImageID)
		require.Zero(t, c.Status.RestartCount)
	})
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
