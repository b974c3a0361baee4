package container

import (
	"time"

	v1 "berth/api/v1"
	"berth/runtime"
)

// Observed is what the host says about one container.
type Observed struct {
	Now            time.Time
	BootID         string        // of the host; changes when it boots
	Engine         string        // the engine's instance; changes when it starts anew and its containers ended; empty: unknown
	Confirmed      bool          // the engine took a new connection after it reported an exit: it was not about to end
	Server         runtime.State // zero: there is none
	Install        runtime.State // looked at only while an installation is wanted or not cleaned up, or of a deletion once the server is gone
	Missing        string        // an image that is not on the host; looked at only before an installation
	Matched        bool          // the console has matched the start pattern in this run
	OutputComplete bool          // what a run that has ended printed was read; looked at only before its end is told
	ServerLost     bool          // the server exited while the engine was away; decides only while instances are unknown
	InstallLost    bool          // so did the installer
	OverLimit      string        // why the container is under disk pressure, a reason; empty: it is not
	Shed           bool          // and would not be without what the server has written outside its volume

	StopFor     time.Duration // since the run was asked to exit; see Timers
	InstallFor  time.Duration // since the installer was first observed running
	PressureFor time.Duration // since the volume was first observed over its limit
}

// Plan picks the next step. It reads nothing and changes nothing.
func Plan(c v1.Container, o Observed) Step {
	switch {
	case c.Meta.Deleted:
		return planDelete(c, o)
	case oomReportedLate(c, o.Server):
		return do(RecordOOM)
	case o.OverLimit != pressure(c):
		return do(RecordPressure)
	case o.Server.Paused, o.Install.Paused:
		return do(Unpause)
	case c.Status.ObservedInstall != c.Spec.InstallGeneration:
		return planInstall(c, o)
	case c.Status.InstallID != "":
		return endInstaller(o)
	case c.Status.InstallFailed:
		return planOff(c, o)
	case c.Spec.Power == v1.PowerOn && !underDiskPressure(c):
		return planOn(c, o)
	case c.Spec.Power == v1.PowerOn && o.Server.Running && o.PressureFor < pressureLimit(c):
		return await(AwaitSpace, o.Now.Add(pressureLimit(c)-o.PressureFor))
	}
	return planOff(c, o)
}

func planDelete(c v1.Container, o Observed) Step {
	switch {
	case c.Status.Phase != v1.Deleting:
		return do(RecordDeleting)
	case o.Server.Paused, o.Install.Paused:
		return do(Unpause)
	case o.Server.Running:
		return do(KillServer)
	case exists(o.Server):
		return do(RemoveServer)
	case o.Install.Running:
		return do(KillInstaller)
	case exists(o.Install):
		return do(RemoveInstaller)
	}
	return do(Forget)
}

func planInstall(c v1.Container, o Observed) Step {
	switch {
	case o.Server.Running && c.Status.Phase == v1.Installing:
		return do(KillServer) // from outside: no run of ours
	case o.Server.Running:
		return planStop(c, o)
	case c.Status.Phase.Active():
		return recordExit(o, o.Server, RecordExit)
	case c.Status.StartedInstall != c.Spec.InstallGeneration:
		return do(RecordInstalling)
	case exists(o.Install) && o.Install.SpecHash != c.Spec.InstallHash():
		return endInstaller(o)
	case exists(o.Install):
		return planInstaller(c, o)
	case o.Missing != "":
		return do(PullImage)
	case c.Spec.InstallScript == "":
		return finishInstall(c, o)
	}
	return do(CreateInstaller)
}

// planInstaller is for the installer of the installation that is wanted.
func planInstaller(c v1.Container, o Observed) Step {
	switch {
	case o.Install.StartedAt.IsZero():
		return do(StartInstaller)
	case !o.Install.Running && !o.Confirmed:
		return await(AwaitEngine, o.Now.Add(engineWait))
	case !o.Install.Running && interrupted(c, o):
		return do(RemoveInstaller) // and begin anew
	case !o.Install.Running && o.Install.ExitCode == 0:
		return finishInstall(c, o)
	case !o.Install.Running:
		return recordExit(o, o.Install, FinishInstall)
	case otherEngine(c, o):
		return do(RecordEngine)
	case installLeft(c, o) <= 0:
		return do(KillInstaller)
	}
	return await(AwaitInstall, o.Now.Add(installLeft(c, o)))
}

// finishInstall is for an installation that went well. What is ready has its
// container, made from the spec.
func finishInstall(c v1.Container, o Observed) Step {
	if exists(o.Server) && o.Server.SpecHash != c.Spec.SpecHash() {
		return do(RemoveServer)
	}
	return recordExit(o, o.Install, FinishInstall)
}

// outputWait is how long the end of a run is kept back, at most, for what it
// printed last. Reading takes milliseconds, seconds on a host that is very busy.
const outputWait = 10 * time.Second

// recordExit tells of the end of a run once what it printed was read, or could have
// been. An end far ahead, by a clock that was set back, is told at once.
func recordExit(o Observed, run runtime.State, tell Action) Step {
	late := run.FinishedAt.Add(outputWait)
	left := late.Sub(o.Now)
	if exists(run) && !o.OutputComplete && left > 0 && left < 2*outputWait {
		return await(AwaitOutput, late)
	}
	return do(tell)
}

func endInstaller(o Observed) Step {
	if o.Install.Running {
		return do(KillInstaller)
	}
	return do(RemoveInstaller)
}

func planOff(c v1.Container, o Observed) Step {
	switch {
	case o.Server.Running:
		return planStop(c, o)
	case c.Status.Phase.Active():
		return recordExit(o, o.Server, RecordExit)
	case c.Status.InstallFailed:
		return do(Rest)
	}
	return prepare(c, o, do(Rest))
}

func planOn(c v1.Container, o Observed) Step {
	switch {
	case o.Server.Running && shouldStop(c, o.Server):
		return planStop(c, o)
	case o.Server.Running:
		return planRunning(c, o)
	case c.Status.Phase == v1.Starting && startIsPending(c, o.Server):
		return prepare(c, o, do(StartServer)) // noted, and not done
	case c.Status.Phase.Active() && causeMatters(c, o) && !o.Confirmed:
		return await(AwaitEngine, o.Now.Add(engineWait))
	case c.Status.Phase.Active():
		return recordExit(o, o.Server, RecordExit)
	case c.Status.ObservedRun != c.Spec.RunGeneration:
		return prepare(c, o, do(StartServer))
	case c.Status.NextRetryAt == nil:
		return prepare(c, o, do(Rest)) // it ended by itself, and stays so
	case o.Now.Before(*c.Status.NextRetryAt) && !vanished(c, o.Server) && !clockWentBack(c, o):
		return prepare(c, o, await(AwaitRetry, *c.Status.NextRetryAt))
	}
	return prepare(c, o, do(StartServer))
}

// shouldStop says whether what runs is to end although a run is wanted: it is an
// older run, it was asked to end before there was space again, or somebody else
// began it in a container that was made from an older spec.
func shouldStop(c v1.Container, server runtime.State) bool {
	return c.Status.ObservedRun != c.Spec.RunGeneration || c.Status.Phase == v1.Stopping ||
		!c.Status.Phase.Active() && server.SpecHash != c.Spec.SpecHash()
}

// planRunning is for the run that is wanted.
func planRunning(c v1.Container, o Observed) Step {
	switch {
	case c.Status.Phase.Active() && otherEngine(c, o):
		return do(RecordEngine)
	case limitsDue(c, o.Server):
		return do(UpdateLimits)
	case c.Status.Phase == v1.Running && sameRun(c, o.Server):
		return do(Rest)
	case c.Status.Phase != v1.Starting:
		return do(RecordStarting) // begun from outside, as wanted
	case o.Matched:
		return do(RecordRunning)
	}
	return do(AwaitMatch)
}

// planStop ends a run: with a grace period, unless a kill or a deletion asked
// for it. The grace period begins with the signal.
func planStop(c v1.Container, o Observed) Step {
	switch {
	case c.Spec.KillGeneration > 0 && c.Status.ObservedRun <= c.Spec.KillGeneration:
		return do(KillServer)
	case c.Status.Phase != v1.Stopping:
		return do(RecordStopping)
	case o.StopFor >= stopLimit(c):
		return do(KillServer)
	case !c.Status.StopSent:
		return do(SendStop)
	}
	return await(AwaitStop, o.Now.Add(stopLimit(c)-o.StopFor))
}

// prepare sees that a container stands ready that was made from the spec, so
// that a start is nothing but a start; then comes next.
func prepare(c v1.Container, o Observed, next Step) Step {
	switch {
	case !exists(o.Server):
		return do(CreateServer)
	case o.Server.SpecHash != c.Spec.SpecHash():
		return do(RemoveServer)
	case next.Do == StartServer && stopTimeoutDiffers(c.Spec, o.Server):
		return do(RemoveServer) // no engine changes it in a container that exists
	case underDiskPressure(c) && o.Shed:
		return do(RemoveServer) // with what it has written outside its volume
	case limitsDue(c, o.Server):
		return do(UpdateLimits)
	case next.Do == Rest && o.Server.ContainerID != c.Status.ContainerID, next.Do == AwaitRetry && c.Status.ContainerID == "":
		return do(RecordCreated)
	}
	return next
}

func exists(s runtime.State) bool { return s.ContainerID != "" }

// startIsPending says whether the start that was noted has not happened: the
// engine shows the same last start as before it, or another container, of
// which nothing was started.
func startIsPending(c v1.Container, server runtime.State) bool {
	return server.StartedAt.IsZero() ||
		server.ContainerID == c.Status.ContainerID && server.StartedAt.Equal(c.Status.StartedBefore)
}

// sameRun says whether the run that was told as running is the one that goes on.
func sameRun(c v1.Container, server runtime.State) bool {
	return c.Status.StartedAt == nil || c.Status.StartedAt.Equal(server.StartedAt)
}

// oomReportedLate says whether the engine has said only after the end of a run that
// it ran out of memory: on a busy host by some 0.3 s.
func oomReportedLate(c v1.Container, server runtime.State) bool {
	return c.Status.Phase == v1.Exit && !c.Status.OOMKilled && server.OOMKilled &&
		server.ContainerID == c.Status.ContainerID && c.Status.StartedAt != nil && c.Status.StartedAt.Equal(server.StartedAt)
}

// vanished says whether the container of the last run is gone, removed behind
// berth's back.
func vanished(c v1.Container, server runtime.State) bool {
	return c.Status.ContainerID != "" && server.ContainerID != c.Status.ContainerID
}

// causeMatters reports whether something has exited and is to run again if it
// did not exit by itself, but with the engine.
func causeMatters(c v1.Container, o Observed) bool {
	installer := c.Status.ObservedInstall != c.Spec.InstallGeneration && !o.Install.StartedAt.IsZero() && !o.Install.Running
	server := c.Spec.Power == v1.PowerOn && c.Status.ObservedRun == c.Spec.RunGeneration && exists(o.Server) && !o.Server.Running &&
		(c.Status.Phase == v1.Running || c.Status.Phase == v1.Starting && !startIsPending(c, o.Server))
	return installer || server
}

// lost reports whether a run ended because the host or the engine did. away is
// whether it exited while the engine was away.
func lost(c v1.Container, o Observed, away bool) bool {
	if c.Status.Engine != "" && o.Engine != "" {
		away = c.Status.Engine != o.Engine
	}
	return away || c.Status.BootID != o.BootID
}

// otherEngine reports whether what runs now runs under an instance of the
// engine that is not recorded: the engine started anew and kept it.
func otherEngine(c v1.Container, o Observed) bool {
	return o.Engine != "" && c.Status.Engine != o.Engine
}

// interrupted reports whether the installer exited with the host or the engine: that
// is no verdict about the installation. An exit code of 0 is none either, as an
// engine that ends asks its containers to exit.
func interrupted(c v1.Container, o Observed) bool { return lost(c, o, o.InstallLost) }

// limitsDue says whether a limit is to be changed live. What this engine did
// not apply to this container once is not tried again, nor does it keep it from
// running.
func limitsDue(c v1.Container, server runtime.State) bool {
	return limitsDiffer(c.Spec, server.Live) && c.Status.LimitsRefused != limitsTry(c, server)
}

// clockWentBack reports whether the host's clock is before the last transition:
// then the wait for a retry would be longer than it was meant to be.
func clockWentBack(c v1.Container, o Observed) bool { return o.Now.Before(c.Status.Since) }
