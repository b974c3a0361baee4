package container

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "berth/api/v1"
	"berth/runtime"
)

// Reasons of conditions that more than one place names.
const (
	reasonExited        = "Exited"     // the run exited by itself
	reasonStopped       = "Stopped"    // it was requested to exit
	reasonRemoved       = "Removed"    // the container was removed from outside
	reasonNotStarted    = "NotStarted" // the start was cancelled
	reasonPresent       = "Present"    // something is on the host
	reasonVolumeMissing = "VolumeMissing"
	reasonMountRefused  = "MountRefused"
	reasonNoRoom        = "NoRoom" // no machine has room for it
	reasonMachineLost   = "MachineLost"
)

// derive completes a changed status with the conditions, the message and the times that
// follow from the spec, the status and the observed state. It reads nothing else. Steps set
// facts, and the conditions that report an error of theirs. c is the container before the
// change.
func derive(c v1.Container, o Observed, st *v1.ContainerStatus, now time.Time) {
	status := func(kind string) string { return v1.FindCondition(st.Conditions, kind).Status }
	changed := func(kind string) bool { // by the step itself
		return v1.FindCondition(st.Conditions, kind) != v1.FindCondition(c.Status.Conditions, kind)
	}
	begins := st.StartRecordedAt != c.Status.StartRecordedAt              // another run
	current := exists(o.Server) && o.Server.SpecHash == c.Spec.SpecHash() // the server was created from the spec
	if (begins || st.Phase != c.Status.Phase) && !changed(v1.Started) {
		setStarted(c, o, st, now)
	}
	created := current && st.ObservedInstall == c.Spec.InstallGeneration || exists(o.Install) && o.Install.StartedAt.IsZero()
	if created && (status(v1.ImageAvailable) == v1.Unknown || status(v1.ImageAvailable) == v1.False && !changed(v1.ImageAvailable)) {
		if st.Message == v1.FindCondition(st.Conditions, v1.ImageAvailable).Message {
			st.Message = ""
		}
		setImagePresent(st, now)
	}
	if current && status(v1.LimitsApplied) == v1.False && !changed(v1.LimitsApplied) && !limitsDiffer(c, o.Server) {
		setCondition(st, now, condition(v1.LimitsApplied, v1.True, "Applied", "the limits are in force"))
	}
	switch {
	case status(v1.StartPatternNotMatched) != v1.True:
	case st.Phase == v1.Starting && begins:
		setCondition(st, now, condition(v1.StartPatternNotMatched, v1.False, "Starting", "another run is starting"))
	case st.Phase == v1.Running:
		setCondition(st, now, condition(v1.StartPatternNotMatched, v1.False, "Matched", "the start pattern matched"))
	case st.Phase != v1.Starting && st.Phase != v1.Stopping:
		setCondition(st, now, condition(v1.StartPatternNotMatched, v1.False, reasonExited, "the run has exited"))
	}
	if c.Spec.PullPolicy != v1.PullAlways || status(v1.ImageCurrent) == v1.Unknown && c.Spec.Power != v1.PowerOn {
		removeCondition(st, v1.ImageCurrent) // it is about a start that is no longer requested
	}
	if len(c.Spec.ConfigFiles) == 0 {
		removeCondition(st, v1.ConfigFilesApplied)
	}
	setPending(c, o, st, now)
	st.Machine = cmp.Or(o.Install.Machine, o.Server.Machine, st.Machine)
	if c.Spec.Power == v1.PowerOff || st.InstallFailed {
		st.NextRetryAt = nil // nothing is started
	}
	if st.Message == "" {
		st.Message = messageOf(c.Spec, *st)
	}
	switch {
	case v1.Unready(c.Spec, *st) == "":
		st.UnreadySince = nil
	case st.UnreadySince == nil:
		st.UnreadySince = &now
	}
}

// setPending sets the condition Pending: a run of an older spec goes on until its next start.
func setPending(c v1.Container, o Observed, st *v1.ContainerStatus, now time.Time) {
	switch {
	case len(c.Spec.Deferred) > 0 && outdated(c, o.Server) && o.Server.Running && st.Phase.Active() && st.ObservedRun == c.Spec.RunGeneration:
		setCondition(st, now, condition(v1.Pending, v1.True, "NextStart", strings.Join(c.Spec.Deferred, ", ")+": changed at the next start"))
	case v1.FindCondition(st.Conditions, v1.Pending).Status == v1.True:
		setCondition(st, now, condition(v1.Pending, v1.False, "Applied", "no field waits for a start"))
	}
}

// messageOf returns the message of a container about which no step reports anything; empty if
// there is none.
func messageOf(spec v1.ContainerSpec, st v1.ContainerStatus) string {
	volume := v1.FindCondition(st.Conditions, v1.VolumeReady)
	switch {
	case st.Phase == v1.Starting && spec.StartPattern == "":
		return startingText
	case st.Phase == v1.Stopping && timedOut(st):
		return v1.FindCondition(st.Conditions, v1.Started).Message
	case volume.Status == v1.False && st.Phase.Active():
		return volume.Message
	}
	return ""
}

const startingText = "the engine is starting it" // without a start pattern only the engine is waited for

// startWaits reports whether it is recorded what a start in the engine waits for.
func startWaits(c v1.Container) bool {
	for _, kind := range []string{v1.Started, v1.Installed} {
		last := v1.FindCondition(c.Status.Conditions, kind)
		if last.Reason == v1.ReasonStartWaits || last.Reason == reasonNoRoom && last.Status == v1.Unknown {
			return true
		}
	}
	return false
}

// setStarted sets the condition Started of a container that has entered a phase.
func setStarted(c v1.Container, o Observed, st *v1.ContainerStatus, now time.Time) {
	set := func(status, reason, text string) { setCondition(st, now, condition(v1.Started, status, reason, text)) }
	switch st.Phase {
	case v1.Starting:
		text := "the start pattern has not matched yet"
		if c.Spec.StartPattern == "" {
			text = startingText
		}
		set(v1.Unknown, "Starting", text)
	case v1.Running:
		set(v1.True, "Running", "the container runs")
	case v1.Stopping:
		set(v1.True, "Stopping", "the container runs and was requested to exit")
	case v1.Deleting:
		set(v1.Unknown, "Deleting", "the container is killed and removed")
	case v1.Exit:
		reason, text := exitReason(c, o)
		set(v1.False, reason, text)
	}
}

// exitReason returns why nothing runs after an exit.
func exitReason(c v1.Container, o Observed) (reason, text string) {
	switch {
	case vanished(c, o.Server):
		return reasonRemoved, "the container was removed from outside"
	case startIsPending(c, o.Server):
		return reasonNotStarted, "the start was cancelled before it began"
	case timedOut(c.Status):
		return v1.ReasonStartTimedOut, v1.FindCondition(c.Status.Conditions, v1.Started).Message
	case stopFailed(c, o.Server):
		return v1.ReasonKilled, stopFailedText(c)
	case left(c, o.Server):
		return reasonMachineLost, machineLostText
	case c.Status.Phase == v1.Stopping && (!killRequested(c) || c.Spec.Power == v1.PowerOn):
		return reasonStopped, "the container was stopped"
	case c.Spec.Power != v1.PowerOn:
		return v1.ReasonKilled, "the container was killed"
	case o.Server.Interrupted:
		return reasonMachineLost, machineLostText
	case c.Status.BootID != o.BootID:
		return "HostRestarted", "the container exited with its host"
	case lost(c, o, o.Server):
		return "EngineRestarted", "the container exited with the engine"
	case ranOutOfMemory(c, o.Server):
		return v1.ReasonOutOfMemory, outOfMemoryText
	}
	return reasonExited, o.otherMachine(fmt.Sprintf("the container exited with code %d", o.Server.ExitCode))
}

const machineLostText = "the container exited with its machine, or had to leave it"

// left reports whether a run was stopped only because it had to leave its machine.
func left(c v1.Container, server runtime.State) bool {
	return server.Interrupted && c.Status.Phase == v1.Stopping && c.Spec.Power == v1.PowerOn &&
		c.Status.ObservedRun == c.Spec.RunGeneration && pressure(c) == ""
}

// stopFailed reports whether a run ended because its stop took too long. The engine may round times
// down to a second.
func stopFailed(c v1.Container, server runtime.State) bool {
	return c.Status.Phase == v1.Stopping && c.Status.StopSent && server.ExitCode == sigkillExitCode &&
		server.FinishedAt.Sub(c.Status.StopRecordedAt)+time.Second >= stopLimit(c)
}

func stopFailedText(c v1.Container) string {
	return fmt.Sprintf("did not exit within %s and was killed", stopLimit(c))
}

const outOfMemoryText = "the container ran out of memory"

// ranOutOfMemory reports whether memory ended a run. A run that survived the kill of
// one of its processes and exited with code 0 did not.
func ranOutOfMemory(c v1.Container, server runtime.State) bool {
	return endedWithoutMemory(c, server) && server.ExitCode != 0
}

// endedWithoutMemory reports whether the kernel killed a process of a run shortly before its
// exit, which nobody had requested.
func endedWithoutMemory(c v1.Container, server runtime.State) bool {
	reason := v1.FindCondition(c.Status.Conditions, v1.Started).Reason
	requested := c.Status.Phase == v1.Stopping || c.Status.Phase.Active() && c.Spec.Power != v1.PowerOn ||
		c.Status.Phase == v1.Exit && (reason == reasonStopped || reason == v1.ReasonKilled)
	survived := !server.OOMAt.IsZero() && !server.OOMAt.After(c.Status.OOMAt)
	return server.OOMKilled && !requested && !survived
}

// timedOut reports whether the last run is being stopped, or was, because its start
// pattern did not match in time.
func timedOut(st v1.ContainerStatus) bool {
	return v1.FindCondition(st.Conditions, v1.Started).Reason == v1.ReasonStartTimedOut
}

// failing reports whether the last step of a container failed.
func failing(c v1.Container) bool {
	return v1.FindCondition(c.Status.Conditions, v1.Reconciled).Status == v1.False
}

// clearFailure records that the last step did not fail.
func clearFailure(st *v1.ContainerStatus, now time.Time) {
	if v1.FindCondition(st.Conditions, v1.Reconciled).Status == v1.False {
		setCondition(st, now, condition(v1.Reconciled, v1.True, "StepSucceeded", "the last step succeeded"))
	}
}

func setInstalling(st *v1.ContainerStatus, now time.Time) {
	setCondition(st, now, condition(v1.Installed, v1.Unknown, "Installing", "the installation is in progress"))
}

func setImagePresent(st *v1.ContainerStatus, now time.Time) {
	setCondition(st, now, condition(v1.ImageAvailable, v1.True, reasonPresent, "the image is available"))
}

func condition(kind, status, reason, message string) v1.Condition {
	return v1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// setCondition replaces the condition of the same type.
func setCondition(st *v1.ContainerStatus, now time.Time, c v1.Condition) {
	st.Conditions = v1.SetCondition(st.Conditions, c, now)
}

// removeCondition removes the condition of a type.
func removeCondition(st *v1.ContainerStatus, kind string) {
	st.Conditions = slices.DeleteFunc(slices.Clone(st.Conditions), func(c v1.Condition) bool { return c.Type == kind })
}
