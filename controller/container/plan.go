package container

import (
	"strings"
	"time"

	v1 "berth/api/v1"
	"berth/runtime"
)

// Observed is the observed state of one container on the host.
type Observed struct {
	Now       time.Time
	BootID    string        // of the host; changes when it boots
	Engine    string        // the engine's instance; changes when the engine restarts; empty: unknown
	Confirmed bool          // the engine accepted a new connection after it reported an exit: it was not shutting down
	Server    runtime.State // zero: no container
	Install   runtime.State // zero: no container, or not observed, as no installation or deletion needs it
	// why the machine that it runs on cannot be reached, so that the states are the last known ones; empty: it can
	Unreachable    string
	Missing        string // an image that is not on the host; observed only before an installation
	Gateway        string // the address of the host as the container sees it; observed only if the spec names it
	Foreign        string // the platforms of the image of a run that failed at once, if it is for another machine
	Prepared       bool   // the volume is ready for the next start
	Matched        bool   // the console matched the start pattern in this run
	OutputComplete bool   // the output of an exited run was read; observed only before its exit is recorded
	OverLimit      string // reason of the disk pressure; empty: none
	Unmeasured     string // why something that was not measured counts as over its limit; empty: it was measured
	FreedByRemoval bool   // there would be no disk pressure without the files outside the volume
	VolumeMissing  bool   // the directory of the volume is missing on the host
	Restoring      bool   // the volume is being restored: no run begins, and one that runs is stopped
	Runaway        bool   // the files outside the volume grow too fast for a graceful stop

	Warn        Warnings
	StartFor    time.Duration // since the starting run was first observed
	StopFor     time.Duration // since the run was asked to exit; see timers
	InstallFor  time.Duration // since the installer was first observed running
	PressureFor time.Duration // since the volume was first observed over its limit
}

// Plan picks the next step. It reads nothing and changes nothing.
func Plan(c v1.Container, o Observed) Step {
	switch {
	case o.Unreachable != unreachable(c):
		return RecordReach
	case o.Unreachable != "":
		return AwaitMachine
	case c.Meta.Deleted:
		return planDelete(c, o)
	case oomReportedLate(c, o.Server):
		return RecordOOM
	case o.VolumeMissing != volumeMissing(c):
		return RecordVolume
	case o.OverLimit != pressure(c):
		return RecordPressure
	case o.Server.Paused, o.Install.Paused:
		return Unpause
	case c.Status.ObservedInstall != c.Spec.InstallGeneration:
		return planInstall(c, o)
	case c.Status.InstallID != "":
		return discardInstaller(o)
	case c.Status.InstallFailed:
		return planOff(c, o)
	case c.Spec.Power == v1.PowerOn && o.Restoring && (c.Status.Phase != v1.Starting || !startIsPending(c, o.Server)):
		return planOff(c, o)
	case c.Spec.Power == v1.PowerOn && !underDiskPressure(c):
		return planOn(c, o)
	case c.Spec.Power == v1.PowerOn && o.Server.Running && o.PressureFor < pressureLimit(c):
		return AwaitSpace.until(o.Now.Add(pressureLimit(c) - o.PressureFor))
	}
	return planOff(c, o)
}

func planDelete(c v1.Container, o Observed) Step {
	switch {
	case c.Status.Phase != v1.Deleting:
		return RecordDeleting
	case o.Server.Paused, o.Install.Paused:
		return Unpause
	case o.Server.Running:
		return KillServer
	case exists(o.Server):
		return RemoveServer
	case o.Install.Running:
		return KillInstaller
	case exists(o.Install):
		return RemoveInstaller
	}
	return Forget
}

func planInstall(c v1.Container, o Observed) Step {
	switch {
	case o.Server.Running && c.Status.Phase == v1.Installing:
		return KillServer // from outside: no run of ours
	case o.Server.Running:
		return planStop(c, o)
	case o.Server.Starting:
		return KillServer
	case c.Status.Phase.Active():
		return afterOutput(o, o.Server, RecordExit)
	case c.Status.StartedInstall != c.Spec.InstallGeneration:
		return RecordInstalling
	case exists(o.Install) && o.Install.SpecHash != c.Spec.InstallHash():
		return discardInstaller(o)
	case exists(o.Install):
		return planInstaller(c, o)
	case o.Missing != "":
		return PullImage
	case !c.Spec.Installs():
		return finishInstall(c, o)
	}
	return CreateInstaller
}

// planInstaller plans the next step of the requested installation, whose installer
// exists.
func planInstaller(c v1.Container, o Observed) Step {
	switch {
	case o.Install.StartedAt.IsZero() && !o.Prepared:
		return PrepareVolume
	case o.Install.StartedAt.IsZero():
		return StartInstaller
	case !o.Install.Running && !o.Confirmed:
		return AwaitEngine.until(o.Now.Add(engineWait))
	// then its exit code, even 0, is no result: an engine that shuts down stops its containers
	case !o.Install.Running && lost(c, o, o.Install):
		return RemoveInstaller // and begin anew
	case !o.Install.Running && o.Install.ExitCode == 0:
		return finishInstall(c, o)
	case !o.Install.Running:
		return afterOutput(o, o.Install, FinishInstall)
	case startWaits(c):
		return RecordBegun
	case otherEngine(c, o):
		return RecordEngine
	case installLeft(c, o) <= 0:
		return KillInstaller
	case installSlow(c, o):
		return RecordInstallSlow
	}
	return AwaitInstall.until(o.Now.Add(nextCheck(installLeft(c, o), o.Warn.Install-o.InstallFor)))
}

// installLeft returns how long the installer may still run.
func installLeft(c v1.Container, o Observed) time.Duration {
	left := c.Spec.InstallLimit() - o.InstallFor
	if underDiskPressure(c) {
		left = min(left, pressureLimit(c)-min(o.PressureFor, o.InstallFor))
	}
	return left
}

// finishInstall plans the end of a successful installation. A server container of
// an older spec is removed first: a ready container has been created from its spec.
func finishInstall(c v1.Container, o Observed) Step {
	if exists(o.Server) && o.Server.SpecHash != c.Spec.SpecHash() {
		return RemoveServer
	}
	return afterOutput(o, o.Install, FinishInstall)
}

// outputWait limits how long the record of an exit is delayed until the last output
// was read. Reading takes milliseconds, or seconds on a very busy host.
const outputWait = 10 * time.Second

// afterOutput plans next once the output of an exited run was read, at the latest
// after outputWait. An exit far in the future, by a clock that was set back, does
// not wait.
func afterOutput(o Observed, run runtime.State, next Step) Step {
	late := run.FinishedAt.Add(outputWait)
	left := late.Sub(o.Now)
	if exists(run) && !o.OutputComplete && left > 0 && left < 2*outputWait {
		return AwaitOutput.until(late)
	}
	return next
}

func discardInstaller(o Observed) Step {
	if o.Install.Running {
		return KillInstaller
	}
	return RemoveInstaller
}

func planOff(c v1.Container, o Observed) Step {
	switch {
	case o.Server.Running:
		return planStop(c, o)
	case o.Server.Starting:
		return KillServer // before its exit is recorded: it could run at any time
	case c.Status.Phase.Active():
		return afterOutput(o, o.Server, RecordExit)
	case c.Status.InstallFailed:
		return Rest
	}
	return withServer(c, o, Rest)
}

func planOn(c v1.Container, o Observed) Step {
	switch {
	case o.Server.Running && shouldStop(c, o.Server):
		return planStop(c, o)
	case o.Server.Running:
		return planRunning(c, o)
	case c.Status.Phase == v1.Starting && startIsPending(c, o.Server):
		return withServer(c, o, StartServer) // recorded, and has not happened
	case c.Status.Phase.Active() && causeMatters(c, o) && !o.Confirmed:
		return AwaitEngine.until(o.Now.Add(engineWait))
	case c.Status.Phase.Active() && oomMayFollow(c, o):
		return AwaitCause.until(o.Server.FinishedAt.Add(causeWait))
	case c.Status.Phase.Active():
		return afterOutput(o, o.Server, RecordExit)
	case c.Status.ObservedRun != c.Spec.RunGeneration:
		return withServer(c, o, StartServer)
	case c.Status.NextRetryAt == nil:
		return withServer(c, o, Rest) // it exited, and the policy allows no restart
	case o.Now.Before(*c.Status.NextRetryAt) && !vanished(c, o.Server) && !clockWentBack(c, o):
		return withServer(c, o, AwaitRetry.until(*c.Status.NextRetryAt))
	}
	return withServer(c, o, StartServer)
}

// shouldStop reports whether the running container must stop although a run is
// requested: it is an older run, its stop began under disk pressure, it has to leave its machine, or it was
// started from outside in a container that was created from an older spec.
func shouldStop(c v1.Container, server runtime.State) bool {
	return server.Leaving || c.Status.ObservedRun != c.Spec.RunGeneration || c.Status.Phase == v1.Stopping ||
		!c.Status.Phase.Active() && server.SpecHash != c.Spec.SpecHash()
}

// planRunning plans the next step of the requested run, which runs.
func planRunning(c v1.Container, o Observed) Step {
	switch {
	case c.Status.Phase.Active() && otherEngine(c, o):
		return RecordEngine
	case limitsDue(c, o.Server):
		return UpdateLimits
	case startWaits(c):
		return RecordBegun
	case c.Status.Phase == v1.Running && sameRun(c, o.Server):
		return planUpkeep(c, o, Rest)
	case c.Status.Phase != v1.Starting:
		return RecordStarting // started from outside, and requested
	case o.Matched:
		return RecordRunning
	}
	return planUpkeep(c, o, planStarting(c, o))
}

// oomWait is how long after the kernel killed a process a run must run to count as one that
// goes on.
const oomWait = 2 * time.Second

// planUpkeep plans what has happened to a run that goes on, or next.
func planUpkeep(c v1.Container, o Observed, next Step) Step {
	left := o.Server.OOMAt.Add(oomWait).Sub(o.Now)
	switch {
	case o.Server.Detached:
		return ConnectServer
	case !o.Server.OOMAt.After(c.Status.OOMAt):
		return next
	case left > 0 && left <= 2*oomWait: // otherwise the clock was set back
		return AwaitSurvival.until(o.Now.Add(left))
	}
	return RecordProcessKilled
}

// planStarting plans the next step of a run that has not matched its start pattern.
func planStarting(c v1.Container, o Observed) Step {
	left := time.Duration(c.Spec.StartTimeout) - o.StartFor
	switch {
	case c.Spec.StartTimeout > 0 && left <= 0:
		return RecordStartTimeout
	case startSlow(c, o):
		return RecordStartSlow
	}
	if wait := nextCheck(left, o.Warn.Start-o.StartFor); wait > 0 {
		return AwaitMatch.until(o.Now.Add(wait))
	}
	return AwaitMatch
}

// killRequested reports whether the run is to end without a grace period.
func killRequested(c v1.Container) bool {
	return c.Spec.KillGeneration > 0 && c.Status.ObservedRun <= c.Spec.KillGeneration
}

// planStop plans the end of a run: with a grace period, or without one after a
// kill. The grace period begins with the signal.
func planStop(c v1.Container, o Observed) Step {
	switch {
	case killRequested(c):
		return KillServer
	case c.Status.Phase != v1.Stopping:
		return RecordStopping
	case o.StopFor >= stopLimit(c):
		return KillServer
	case o.Runaway:
		return KillServer
	case !c.Status.StopSent:
		return SendStop
	}
	return AwaitStop.until(o.Now.Add(stopLimit(c) - o.StopFor))
}

// withServer plans next once a container exists that was created from the spec, so
// that a start is only one call.
func withServer(c v1.Container, o Observed, next Step) Step {
	switch {
	case next.is(StartServer) && refreshDue(c):
		return RefreshImage
	case !exists(o.Server):
		return CreateServer
	case o.Server.SpecHash != c.Spec.SpecHash():
		return RemoveServer
	case next.is(StartServer) && o.Server.ContainerID == c.Status.OutdatedID:
		return RemoveServer
	case next.is(StartServer) && c.Status.ServerExpansion != c.Spec.Expansion(o.Gateway):
		return RemoveServer // its environment has the values of before
	case next.is(StartServer) && stopTimeoutDiffers(c.Spec, o.Server):
		return RemoveServer // no engine changes it in a container that exists
	case underDiskPressure(c) && o.FreedByRemoval:
		return RemoveServer // and the files outside its volume
	case limitsDue(c, o.Server):
		return UpdateLimits
	case next.is(StartServer) && !startRecorded(c, o):
		return RecordStart
	case next.is(StartServer) && !o.Prepared:
		return PrepareVolume
	case next.is(Rest) && o.Server.ContainerID != c.Status.ContainerID, next.is(AwaitRetry) && c.Status.ContainerID == "":
		return RecordCreated
	}
	return next
}

func exists(s runtime.State) bool { return s.ContainerID != "" }

// startIsPending reports whether the recorded start has not happened: the engine
// still reports the time of the start before, or a container that was never
// started.
func startIsPending(c v1.Container, server runtime.State) bool {
	return server.StartedAt.IsZero() ||
		server.ContainerID == c.Status.ContainerID && server.StartedAt.Equal(c.Status.StartedBefore)
}

// sameRun reports whether the run that was recorded as running still runs.
func sameRun(c v1.Container, server runtime.State) bool {
	return c.Status.StartedAt == nil || c.Status.StartedAt.Equal(server.StartedAt)
}

// causeWait limits how long the record of an exit is delayed until the engine has reported that the run
// ran out of memory: on a busy host some 0.3 s after the exit.
const causeWait = time.Second

// oomMayFollow reports whether the engine may still report that a run which nobody stopped ran out of
// memory.
func oomMayFollow(c v1.Container, o Observed) bool {
	left := o.Server.FinishedAt.Add(causeWait).Sub(o.Now)
	return o.Server.ExitCode == sigkillExitCode && !o.Server.OOMKilled && o.Server.Live.Memory > 0 &&
		c.Status.Phase != v1.Stopping && left > 0 && left <= causeWait
}

// oomReportedLate reports whether the engine reported only after the record of an
// exit that the run ran out of memory.
func oomReportedLate(c v1.Container, server runtime.State) bool {
	return c.Status.Phase == v1.Exit && !c.Status.OOMKilled && server.OOMKilled &&
		endedWithoutMemory(c, server) && server.ContainerID == c.Status.ContainerID && c.Status.StartedAt != nil &&
		c.Status.StartedAt.Equal(server.StartedAt)
}

// vanished reports whether the container of the last run was removed from outside.
func vanished(c v1.Container, server runtime.State) bool {
	return c.Status.ContainerID != "" && server.ContainerID != c.Status.ContainerID
}

// causeMatters reports whether the cause of an exit determines the next step: a
// container that exited with its engine runs again.
func causeMatters(c v1.Container, o Observed) bool {
	installer := c.Status.ObservedInstall != c.Spec.InstallGeneration && !o.Install.StartedAt.IsZero() && !o.Install.Running
	server := c.Spec.Power == v1.PowerOn && c.Status.ObservedRun == c.Spec.RunGeneration && exists(o.Server) && !o.Server.Running &&
		(c.Status.Phase == v1.Running || c.Status.Phase == v1.Starting && !startIsPending(c, o.Server))
	return installer || server
}

// lost reports whether a run or an installation ended with its machine, the host or the engine.
func lost(c v1.Container, o Observed, run runtime.State) bool {
	otherInstance := c.Status.Engine != "" && o.Engine != "" && c.Status.Engine != o.Engine
	return run.Interrupted || otherInstance || c.Status.BootID != o.BootID
}

// unreachable returns why the machine of a container was last observed to be unreachable;
// empty if it is not.
func unreachable(c v1.Container) string {
	if reach := v1.FindCondition(c.Status.Conditions, v1.MachineReachable); reach.Status == v1.Unknown {
		return reach.Message
	}
	return ""
}

// otherEngine reports whether a running container runs under an instance of the
// engine that is not recorded: the engine restarted and kept the container.
func otherEngine(c v1.Container, o Observed) bool {
	return o.Engine != "" && c.Status.Engine != o.Engine
}

// limitsDue reports whether a limit has to be changed in the existing container. A
// change that the engine refused once is not retried, and does not keep the
// container from running.
func limitsDue(c v1.Container, server runtime.State) bool {
	refused := c.Status.LimitsRefused
	if server.Running {
		refused = strings.TrimSuffix(refused, thisRun)
	}
	return limitsDiffer(c, server) && refused != limitsAttempt(c, server)
}

// clockWentBack reports whether the host's clock is before the last transition.
// Then the wait for a retry would be longer than intended.
func clockWentBack(c v1.Container, o Observed) bool { return o.Now.Before(c.Status.Since) }

// Warnings are the times after which clients are warned; 0: never.
type Warnings struct {
	Start   time.Duration // of a run that has not matched its start pattern
	Install time.Duration // of an installer that runs
}

// startSlow reports whether a run has been starting for long, and nobody was warned.
// Without a pattern there is none that could be wrong.
func startSlow(c v1.Container, o Observed) bool {
	return c.Spec.StartPattern != "" && o.Warn.Start > 0 && o.StartFor >= o.Warn.Start &&
		v1.FindCondition(c.Status.Conditions, v1.StartPatternNotMatched).Status != v1.True
}

// installSlow reports whether the installer has run for long, and nobody was warned.
func installSlow(c v1.Container, o Observed) bool {
	return o.Warn.Install > 0 && o.InstallFor >= o.Warn.Install &&
		v1.FindCondition(c.Status.Conditions, v1.Installed).Reason != v1.ReasonInstallSlow
}

// nextCheck returns the shorter of two times that are left. One that is over does not
// count; if both are, it returns 0 or less.
func nextCheck(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}
