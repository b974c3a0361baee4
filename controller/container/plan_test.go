package container_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	. "berth/controller/container"
	"berth/runtime"
)

var (
	t0 = time.Unix(100, 0)
	t1 = time.Unix(200, 0)
	t2 = time.Unix(300, 0) // now
)

type row struct {
	name   string
	spec   func(*v1.ContainerSpec)
	status func(*v1.ContainerStatus)
	seen   func(*Observed)
	want   Step
}

// wanted returns an installed container whose first run is requested and recorded
// as running.
func wanted() v1.Container {
	spec := v1.ContainerSpec{Image: "i", VolumeID: "v", InstallScript: new("true"), InstallGeneration: 1, RunGeneration: 1, Power: v1.PowerOn}
	return v1.Container{Meta: v1.Meta{ID: "mc"}, Spec: spec, Status: v1.ContainerStatus{
		Phase: v1.Running, ObservedInstall: 1, StartedInstall: 1, ObservedRun: 1, ContainerID: "a", StartedBefore: t0}}
}

func running(c v1.Container) Observed {
	return Observed{Now: t2, Confirmed: true, Server: runtime.State{ContainerID: "a", SpecHash: c.Spec.SpecHash(), Running: true, StartedAt: t1}}
}

func check(t *testing.T, rows []row) {
	t.Helper()
	for _, tc := range rows {
		t.Run(tc.name, func(t *testing.T) {
			c := wanted()
			if tc.spec != nil {
				tc.spec(&c.Spec)
			}
			if tc.status != nil {
				tc.status(&c.Status)
			}
			o := running(c)
			if tc.seen != nil {
				tc.seen(&o)
			}
			require.Equal(t, tc.want.Name, Plan(c, o).Name)
			require.Contains(t, stepNames(), tc.want.Name, "Steps lists it")
		})
	}
}

func stepNames() (names []string) {
	for _, s := range Steps() {
		names = append(names, s.Name)
	}
	return names
}

func none(o *Observed)        { o.Server = runtime.State{} }
func stopped(o *Observed)     { o.Server.Running = false }
func unconfirmed(o *Observed) { stopped(o); o.Confirmed = false }
func fresh(o *Observed)       { o.Server.Running, o.Server.StartedAt = false, time.Time{} }
func stale(o *Observed)       { o.Server.Running, o.Server.SpecHash = false, "old" }

func is(p v1.Phase) func(*v1.ContainerStatus) {
	return func(s *v1.ContainerStatus) { s.Phase = p }
}

func pressedSince(at time.Time) func(*v1.ContainerStatus) {
	return func(s *v1.ContainerStatus) {
		s.Conditions = []v1.Condition{{Type: v1.DiskPressure, Status: v1.True, Reason: v1.ReasonOverLimit, Since: at}}
	}
}

func rootPressed(s *v1.ContainerStatus) {
	s.Conditions = []v1.Condition{{Type: v1.DiskPressure, Status: v1.True, Reason: v1.ReasonRootOverLimit}}
}

func rootOver(o *Observed) { o.OverLimit, o.FreedByRemoval = v1.ReasonRootOverLimit, true }

func off(s *v1.ContainerSpec) { s.Power = v1.PowerOff }

func TestPlanOn(t *testing.T) {
	check(t, []row{
		{"it runs as requested", nil, nil, nil, Rest},
		{"not matched yet", nil, is(v1.Starting), nil, AwaitMatch},
		{"ready", nil, is(v1.Starting), func(o *Observed) { o.Matched = true }, RecordRunning},
		{"started from outside after its exit", nil, is(v1.Exit), nil, RecordStarting},
		{"limits changed", func(s *v1.ContainerSpec) { s.Limits.Memory = 1 << 30 }, nil, func(o *Observed) { o.Server.Live.Memory = 1 << 29 }, UpdateLimits},
		{"limits that the engine did not apply", func(s *v1.ContainerSpec) { s.Limits.Memory = 1 << 30 }, func(s *v1.ContainerStatus) { s.LimitsRefused = "0/a" }, nil, Rest},
		{"limits of another container", func(s *v1.ContainerSpec) { s.Limits.Memory = 1 << 30 }, func(s *v1.ContainerStatus) { s.LimitsRefused = "0/b" }, nil, UpdateLimits},
		{"another spec hash alone restarts nothing", nil, nil, func(o *Observed) { o.Server.SpecHash = "of another version of berth" }, Rest},
		{"paused from outside", nil, nil, func(o *Observed) { o.Server.Paused = true }, Unpause},
		{"started from outside, made from an older spec", nil, is(v1.Exit), func(o *Observed) { o.Server.SpecHash = "old" }, RecordStopping},
		{"restarted from outside", nil, func(s *v1.ContainerStatus) { s.StartedAt = &t0 }, nil, RecordStarting},
		{"stopped under disk pressure that is over", nil, func(s *v1.ContainerStatus) {
			s.Phase, s.StopRecordedAt, s.StopSent = v1.Stopping, t2, true
		}, nil, AwaitStop},
		{"restart", func(s *v1.ContainerSpec) { s.RunGeneration = 2 }, nil, nil, RecordStopping},
		{"it has to leave its machine", nil, nil, func(o *Observed) { o.Server.Leaving = true }, RecordStopping},
		{"and is asked to exit", nil, is(v1.Stopping), func(o *Observed) { o.Server.Leaving = true }, SendStop},
		{"its old run has ended", func(s *v1.ContainerSpec) { s.RunGeneration = 2 }, is(v1.Stopping), stopped, RecordExit},
		{"and the new one begins", func(s *v1.ContainerSpec) { s.RunGeneration = 2 }, is(v1.Exit), stopped, RecordStart},
		{"in a new container if the spec needs one", func(s *v1.ContainerSpec) { s.RunGeneration = 2 }, is(v1.Exit), stale, RemoveServer},
		{"none is there", func(s *v1.ContainerSpec) { s.RunGeneration = 2 }, is(v1.Exit), none, CreateServer},
		{"the stop timeout changed", func(s *v1.ContainerSpec) {
			s.RunGeneration, s.Stop.Timeout = 2, v1.Duration(time.Minute)
		}, is(v1.Exit), stopped, RemoveServer},
		{"created by a version that set no timeout", func(s *v1.ContainerSpec) { s.RunGeneration = 2 }, is(v1.Exit), stopped, RecordStart},
		{"the time is rounded up by the engine", func(s *v1.ContainerSpec) {
			s.RunGeneration, s.Stop.Timeout = 2, v1.Duration(59500*time.Millisecond)
		}, is(v1.Exit), func(o *Observed) { stopped(o); o.Server.StopTimeout = time.Minute }, RecordStart},
		{"a changed time restarts nothing", func(s *v1.ContainerSpec) { s.Stop.Timeout = v1.Duration(time.Minute) }, nil, nil, Rest},
		{"nor recreates an idle container", func(s *v1.ContainerSpec) { s.Stop.Timeout = v1.Duration(time.Minute) }, is(v1.Exit), stopped, Rest},
		{"start recorded, not done", nil, is(v1.Starting), func(o *Observed) { stopped(o); o.Server.StartedAt = t0 }, PrepareVolume},
		{"its volume is prepared", nil, is(v1.Starting), func(o *Observed) { stopped(o); o.Server.StartedAt, o.Prepared = t0, true }, StartServer},
		{"start recorded, and another one requested", func(s *v1.ContainerSpec) { s.RunGeneration = 2 }, is(v1.Starting), func(o *Observed) { stopped(o); o.Server.StartedAt = t0 }, RecordStart},
		{"start recorded, and its container made again", nil, func(s *v1.ContainerStatus) { s.Phase, s.StartedBefore = v1.Starting, time.Time{} },
			func(o *Observed) { fresh(o); o.Server.ContainerID = "b" }, RecordStart},
		{"start recorded, and its container vanished", nil, is(v1.Starting), none, CreateServer},
		{"start recorded, and exited at once", nil, is(v1.Starting), stopped, RecordExit},
		{"it exited", nil, nil, stopped, RecordExit},
		{"it exited, and the engine may be shutting down", nil, nil, unconfirmed, AwaitEngine},
		{"it exited while starting, and the engine may be shutting down", nil, is(v1.Starting), unconfirmed, AwaitEngine},
		{"it exited after a stop request", nil, is(v1.Stopping), unconfirmed, RecordExit},
		{"it exited for another run", func(s *v1.ContainerSpec) { s.RunGeneration = 2 }, nil, unconfirmed, RecordExit},
		{"start recorded, not done, and the engine may be shutting down", nil, is(v1.Starting), func(o *Observed) { unconfirmed(o); o.Server.StartedAt = t0 }, PrepareVolume},
		{"the engine restarted and kept it", nil, nil, func(o *Observed) { o.Engine = "next" }, RecordEngine},
		{"recorded", nil, func(s *v1.ContainerStatus) { s.Engine = "next" }, func(o *Observed) { o.Engine = "next" }, Rest},
		{"it vanished", nil, nil, none, RecordExit},
		{"it exited, and the policy allows no restart", nil, is(v1.Exit), stopped, Rest},
		{"recreated, not started, after it exited and was removed", nil, is(v1.Exit), none, CreateServer},
		{"killed for a restart", func(s *v1.ContainerSpec) { s.RunGeneration, s.KillGeneration = 2, 1 }, nil, nil, KillServer},
	})
}

func TestPlanPressure(t *testing.T) {
	check(t, []row{
		{"the volume is over its limit", nil, nil, func(o *Observed) { o.OverLimit = v1.ReasonOverLimit }, RecordPressure},
		{"it writes on while it stops", nil, func(s *v1.ContainerStatus) { rootPressed(s); s.Phase, s.StopSent = v1.Stopping, true }, func(o *Observed) {
			rootOver(o)
			o.Runaway = true
		}, KillServer},
		{"but the stop is recorded first", nil, rootPressed, func(o *Observed) { rootOver(o); o.Runaway = true }, RecordStopping},
		{"and has been for a moment", nil, pressedSince(t2.Add(-time.Minute)), func(o *Observed) { o.OverLimit = v1.ReasonOverLimit }, AwaitSpace},
		{"and longer", nil, pressedSince(t2.Add(-time.Minute)), func(o *Observed) { o.OverLimit, o.PressureFor = v1.ReasonOverLimit, 2*time.Minute }, RecordStopping},
		{"and for long by the host's clock", nil, pressedSince(t0), func(o *Observed) { o.OverLimit, o.Now = v1.ReasonOverLimit, t2.Add(time.Hour) }, AwaitSpace},
		{"and nothing is started meanwhile", func(s *v1.ContainerSpec) { s.RunGeneration = 2 }, func(s *v1.ContainerStatus) {
			pressedSince(t2)(s)
			s.Phase = v1.Exit
		}, func(o *Observed) { stopped(o); o.OverLimit = v1.ReasonOverLimit }, Rest},
		{"it is not any more", nil, pressedSince(t2), nil, RecordPressure},
		{"what it wrote outside its volume is too much", nil, pressedSince(t2), rootOver, RecordPressure},
		{"then it has no grace period", nil, rootPressed, rootOver, RecordStopping},
		{"and little time to stop", func(s *v1.ContainerSpec) { s.Stop.Timeout = v1.Duration(time.Hour) }, func(s *v1.ContainerStatus) {
			rootPressed(s)
			s.Phase, s.StopSent = v1.Stopping, true
		}, func(o *Observed) { rootOver(o); o.StopFor = 30 * time.Second }, KillServer},
		{"and is removed with it", nil, func(s *v1.ContainerStatus) { rootPressed(s); s.Phase = v1.Exit }, func(o *Observed) { stopped(o); rootOver(o) }, RemoveServer},
	})
}

func TestPlanRestoring(t *testing.T) {
	restoring := func(change func(*Observed)) func(*Observed) {
		return func(o *Observed) {
			if o.Restoring = true; change != nil {
				change(o)
			}
		}
	}
	check(t, []row{
		{"a run is stopped", nil, nil, restoring(nil), RecordStopping},
		{"a recorded start happens first", nil, is(v1.Starting), restoring(fresh), RecordStart},
		{"one that runs is stopped", nil, is(v1.Starting), restoring(nil), RecordStopping},
		{"its exit is recorded", nil, is(v1.Stopping), restoring(stopped), RecordExit},
		{"nothing is started meanwhile", func(s *v1.ContainerSpec) { s.RunGeneration = 2 }, is(v1.Exit), restoring(stopped), Rest},
		{"nor by the restart policy", nil, func(s *v1.ContainerStatus) { s.Phase, s.NextRetryAt = v1.Exit, &t0 }, restoring(stopped), Rest},
		{"kill", func(s *v1.ContainerSpec) { s.Power, s.KillGeneration = v1.PowerOff, 1 }, nil, restoring(nil), KillServer},
	})
}

func TestPlanRetry(t *testing.T) {
	due := func(at time.Time) func(*v1.ContainerStatus) {
		return func(s *v1.ContainerStatus) { s.Phase, s.NextRetryAt = v1.Exit, &at }
	}
	check(t, []row{
		{"not due", nil, due(t2.Add(time.Second)), stopped, AwaitRetry},
		{"due", nil, due(t2), stopped, RecordStart},
		{"due after a start that the engine refused", nil, due(t2), func(o *Observed) { stopped(o); o.Server.StartedAt = t0 }, RecordStart},
		{"vanished meanwhile", nil, due(t2.Add(time.Second)), none, CreateServer},
		{"made again after it vanished: no wait", nil, due(t2.Add(time.Second)), func(o *Observed) { fresh(o); o.Server.ContainerID = "b" }, RecordStart},
		{"a new request waits for no backoff", func(s *v1.ContainerSpec) { s.RunGeneration = 2 }, due(t2.Add(time.Hour)), stopped, RecordStart},
		{"kill ends the loop", off, due(t2), stopped, Rest},
	})
	c := wanted()
	at := t2.Add(time.Second)
	c.Status.Phase, c.Status.NextRetryAt = v1.Exit, &at
	o := running(c)
	o.Server.Running = false
	require.Equal(t, at, Plan(c, o).At)
}

func TestPlanOff(t *testing.T) {
	killed := func(s *v1.ContainerSpec) { s.Power, s.KillGeneration = v1.PowerOff, 1 }
	asked := func(s *v1.ContainerStatus) { s.Phase, s.StopRecordedAt, s.StopSent = v1.Stopping, t2, true }
	check(t, []row{
		{"stop", off, nil, nil, RecordStopping},
		{"signal not sent", off, func(s *v1.ContainerStatus) { s.Phase, s.StopRecordedAt = v1.Stopping, t2 }, nil, SendStop},
		{"signal sent", off, func(s *v1.ContainerStatus) { s.Phase, s.StopRecordedAt, s.StopSent = v1.Stopping, t2, true }, nil, AwaitStop},
		{"the clock went back", off, func(s *v1.ContainerStatus) {
			s.Phase, s.StopRecordedAt, s.StopSent, s.Since = v1.Stopping, t2.Add(time.Hour), true, t2.Add(time.Hour)
		}, nil, AwaitStop},
		{"the clock went ahead", off, func(s *v1.ContainerStatus) { s.Phase, s.StopRecordedAt, s.StopSent = v1.Stopping, t0, true }, nil, AwaitStop},
		{"its time is over", off, asked, func(o *Observed) { o.StopFor = 30 * time.Second }, KillServer},
		{"its time is nearly over", off, asked, func(o *Observed) { o.StopFor = 30*time.Second - 1 }, AwaitStop},
		{"asked long ago, and no signal was sent", off, func(s *v1.ContainerStatus) { s.Phase, s.StopRecordedAt = v1.Stopping, t0 }, nil, SendStop},
		{"its time is over, and the engine refused each signal", off, func(s *v1.ContainerStatus) { s.Phase = v1.Stopping }, func(o *Observed) { o.StopFor = time.Minute }, KillServer},
		{"kill", killed, nil, nil, KillServer},
		{"kill during a stop", killed, is(v1.Stopping), nil, KillServer},
		{"dead", off, is(v1.Stopping), stopped, RecordExit},
		{"recorded", off, is(v1.Exit), stopped, Rest},
		{"started from outside", off, is(v1.Exit), nil, RecordStopping},
		{"paused: a signal would wait for ever", off, is(v1.Exit), func(o *Observed) { o.Server.Paused = true }, Unpause},
		{"called off before it began", off, is(v1.Starting), fresh, RecordExit},
		{"one stands ready for the next start", off, is(v1.Ready), none, CreateServer},
		{"made from the newest spec", off, is(v1.Ready), stale, RemoveServer},
	})
	c := wanted()
	c.Spec.Power, c.Spec.Stop.Timeout = v1.PowerOff, v1.Duration(time.Minute)
	c.Status.Phase, c.Status.StopRecordedAt, c.Status.StopSent = v1.Stopping, t2, true
	require.Equal(t, t2.Add(time.Minute), Plan(c, running(c)).At)
}

// The engine may report out of memory after the exit. Then it is recorded once, and
// only for the run that exited.
func TestPlanOutOfMemory(t *testing.T) {
	ended := func(recorded bool, startedAt time.Time) func(*v1.ContainerStatus) {
		return func(s *v1.ContainerStatus) { s.Phase, s.OOMKilled, s.StartedAt = v1.Exit, recorded, &startedAt }
	}
	oom := func(o *Observed) { stopped(o); o.Server.OOMKilled = true }
	check(t, []row{
		{"reported late", off, ended(false, t1), oom, RecordOOM},
		{"also while a retry waits", nil, ended(false, t1), oom, RecordOOM},
		{"recorded", off, ended(true, t1), oom, Rest},
		{"of a run that is not recorded", off, ended(false, t0), oom, Rest},
		{"of another container", off, ended(false, t1), func(o *Observed) { oom(o); o.Server.ContainerID = "b" }, RecordCreated},
		{"before the exit is recorded", off, func(s *v1.ContainerStatus) { ended(false, t1)(s); s.Phase = v1.Stopping }, oom, RecordExit},
	})
}

// An exit by SIGKILL that nobody requested waits a second for the report that memory was its cause.
func TestPlanAwaitsTheCause(t *testing.T) {
	limited := func(s *v1.ContainerSpec) { s.Limits.Memory = 1 << 20 }
	killed := func(ago time.Duration) func(*Observed) {
		return func(o *Observed) {
			stopped(o)
			o.Server.ExitCode, o.Server.FinishedAt, o.OutputComplete = 137, t2.Add(-ago), true
			o.Server.Live.Memory = 1 << 20
		}
	}
	check(t, []row{
		{"killed just now", limited, nil, killed(time.Millisecond), AwaitCause},
		{"a second ago", limited, nil, killed(time.Second), RecordExit},
		{"by a clock that was ahead", limited, nil, killed(-time.Hour), RecordExit},
		{"reported", limited, nil, func(o *Observed) { killed(0)(o); o.Server.OOMKilled = true }, RecordExit},
		{"without a limit", nil, nil, func(o *Observed) { killed(0)(o); o.Server.Live.Memory = 0 }, RecordExit},
		{"another exit", limited, nil, func(o *Observed) { killed(0)(o); o.Server.ExitCode = 1 }, RecordExit},
		{"on request", func(s *v1.ContainerSpec) { limited(s); off(s) }, nil, killed(0), RecordExit},
		{"while it was stopped", limited, is(v1.Stopping), killed(0), RecordExit},
	})
}

// An exit is recorded when the output was read, or ten seconds after it.
func TestPlanAwaitsOutput(t *testing.T) {
	check(t, []row{
		{"its last output is being read", off, is(v1.Stopping), func(o *Observed) { stopped(o); o.Server.FinishedAt = t2.Add(-9 * time.Second) }, AwaitOutput},
		{"its output was read", off, is(v1.Stopping), func(o *Observed) { stopped(o); o.Server.FinishedAt, o.OutputComplete = t2.Add(-9*time.Second), true }, RecordExit},
		{"reading takes too long", off, is(v1.Stopping), func(o *Observed) { stopped(o); o.Server.FinishedAt = t2.Add(-10 * time.Second) }, RecordExit},
		{"it exited by a clock that was ahead", off, is(v1.Stopping), func(o *Observed) { stopped(o); o.Server.FinishedAt = t2.Add(time.Hour) }, RecordExit},
		{"so of an installer", func(s *v1.ContainerSpec) { s.InstallGeneration = 2 }, func(s *v1.ContainerStatus) { s.Phase, s.StartedInstall = v1.Installing, 2 }, func(o *Observed) {
			c := wanted()
			c.Spec.InstallGeneration = 2
			stopped(o)
			o.Install = runtime.State{ContainerID: "x", SpecHash: c.Spec.InstallHash(), StartedAt: t2, FinishedAt: t2}
		}, AwaitOutput},
	})
}

func again(s *v1.ContainerSpec) { s.InstallGeneration = 2 }

func begun(s *v1.ContainerStatus) {
	s.Phase, s.StartedInstall, s.InstallVolume = v1.Installing, 2, "v"
}

// installing returns a change to an observation with the installer of the second
// installation, which runs.
func installing(change func(*runtime.State)) func(*Observed) {
	return func(o *Observed) {
		o.Server = runtime.State{}
		c := wanted()
		c.Spec.InstallGeneration = 2
		o.Install = runtime.State{ContainerID: "x", SpecHash: c.Spec.InstallHash(), Running: true, StartedAt: t1}
		if change != nil {
			change(&o.Install)
		}
	}
}

func TestPlanInstall(t *testing.T) {
	check(t, []row{
		{"the server is stopped first", again, nil, nil, RecordStopping},
		{"its exit is recorded", again, nil, stopped, RecordExit},
		{"then the installation is recorded", again, is(v1.Exit), stopped, RecordInstalling},
		{"no image", again, begun, func(o *Observed) { none(o); o.Missing = "i" }, PullImage},
		{"image", again, begun, none, CreateInstaller},
		{"image, and nothing to run", func(s *v1.ContainerSpec) { again(s); s.InstallScript = nil }, begun, none, FinishInstall},
		{"nothing to run, and all is made", func(s *v1.ContainerSpec) { again(s); s.InstallScript = nil }, begun, stopped, FinishInstall},
		{"made", again, begun, installing(func(s *runtime.State) { s.Running, s.StartedAt = false, time.Time{} }), PrepareVolume},
		{"prepared", again, begun, func(o *Observed) {
			installing(func(s *runtime.State) { s.Running, s.StartedAt = false, time.Time{} })(o)
			o.Prepared = true
		}, StartInstaller},
		{"runs", again, begun, installing(nil), AwaitInstall},
		{"runs too long", again, begun, func(o *Observed) { installing(nil)(o); o.InstallFor = time.Hour }, KillInstaller},
		{"runs too long by the host's clock", again, begun, installing(func(s *runtime.State) { s.StartedAt = t2.Add(-time.Hour) }), AwaitInstall},
		{"it is on another volume now", func(s *v1.ContainerSpec) { again(s); s.VolumeID = "w" }, begun, installing(nil), KillInstaller},
		{"paused from outside", again, begun, installing(func(s *runtime.State) { s.Paused = true }), Unpause},
		{"ended", again, begun, installing(func(s *runtime.State) { s.Running = false }), FinishInstall},
		{"ended, and all is made", again, begun, func(o *Observed) {
			server := o.Server
			installing(func(s *runtime.State) { s.Running = false })(o)
			o.Server = server
			stopped(o)
		}, FinishInstall},
		{"ended, and an older server stands", again, begun, func(o *Observed) {
			installing(func(s *runtime.State) { s.Running = false })(o)
			o.Server = runtime.State{ContainerID: "a", SpecHash: "old"}
		}, RemoveServer},
		{"ended badly", again, begun, installing(func(s *runtime.State) { s.Running, s.ExitCode = false, 1 }), FinishInstall},
		{"ended too late", again, begun, installing(func(s *runtime.State) { s.Running, s.FinishedAt = false, t1.Add(time.Hour) }), FinishInstall},
		{"the host went down under it", again, begun, func(o *Observed) {
			installing(func(s *runtime.State) { s.Running, s.ExitCode = false, 255 })(o)
			o.BootID = "next"
		}, RemoveInstaller},
		{"an older one runs", again, begun, installing(func(s *runtime.State) { s.SpecHash = "old" }), KillInstaller},
		{"an older one ended", again, begun, installing(func(s *runtime.State) { s.SpecHash, s.Running = "old", false }), RemoveInstaller},
		{"the server was started from outside meanwhile", again, begun, func(o *Observed) { o.Server.Running = true }, KillServer},
		{"one that is left over runs", nil, func(s *v1.ContainerStatus) { s.Phase, s.InstallID = v1.Ready, "x" }, func(o *Observed) {
			stopped(o)
			o.Install = runtime.State{ContainerID: "x", Running: true}
		}, KillInstaller},
		{"cleaned up before anything else", nil, func(s *v1.ContainerStatus) { s.Phase, s.InstallID = v1.Ready, "x" }, stopped, RemoveInstaller},
		{"failed: nothing is started", nil, func(s *v1.ContainerStatus) { s.Phase, s.InstallFailed = v1.Failed, true }, none, Rest},
		{"failed: nothing stays running", nil, func(s *v1.ContainerStatus) { s.Phase, s.InstallFailed = v1.Failed, true }, nil, RecordStopping},
	})
}

// TestPlanInstallEngine: the exit code of an installer is no result if the engine
// stopped it.
func TestPlanInstallEngine(t *testing.T) {
	check(t, []row{
		{"the engine asked it to exit, and it did with 0", again, func(s *v1.ContainerStatus) { begun(s); s.Engine = "last" }, func(o *Observed) {
			installing(func(s *runtime.State) { s.Running = false })(o)
			o.Engine = "next"
		}, RemoveInstaller},
		{"it exited while the engine was away, and the engine is the same", again, func(s *v1.ContainerStatus) { begun(s); s.Engine = "same" }, func(o *Observed) {
			installing(func(s *runtime.State) { s.Running = false })(o)
			o.Engine = "same"
		}, FinishInstall},
		{"it exited, and the engine may be shutting down", again, begun, func(o *Observed) {
			installing(func(s *runtime.State) { s.Running = false })(o)
			o.Confirmed = false
		}, AwaitEngine},
		{"the engine restarted and kept it", again, begun, func(o *Observed) { installing(nil)(o); o.Engine = "next" }, RecordEngine},
	})
}

func TestPlanDelete(t *testing.T) {
	c := wanted()
	c.Meta.Deleted = true
	o := running(c)
	o.Server.Paused = true
	o.Install = runtime.State{ContainerID: "x", Running: true}
	var got []string
	for name := Rest.Name; name != Forget.Name && len(got) < 20; {
		name = Plan(c, o).Name
		got = append(got, name)
		switch name {
		case RecordDeleting.Name:
			c.Status.Phase = v1.Deleting
		case Unpause.Name:
			o.Server.Paused = false
		case KillServer.Name:
			o.Server.Running = false
		case RemoveServer.Name:
			o.Server = runtime.State{}
		case KillInstaller.Name:
			o.Install.Running = false
		case RemoveInstaller.Name:
			o.Install = runtime.State{}
		}
	}
	require.Equal(t, []string{"record deleting", "unpause", "kill server", "remove server", "kill installer", "remove installer", "forget"}, got)
}
