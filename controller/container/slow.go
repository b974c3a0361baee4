package container

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	v1 "berth/api/v1"
)

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

// recordInstallSlow records that an installer has run for long.
func (t *task) recordInstallSlow() error {
	text := fmt.Sprintf("the install script has run since %s and is killed after %s, counted from its start, or from the last start of berth if that is later",
		clock(t.o.Install.StartedAt), t.c.Spec.InstallLimit())
	return t.report(v1.ReasonInstallSlow, text, func(st *v1.ContainerStatus, now time.Time) {
		setCondition(st, now, v1.Installed, v1.Unknown, v1.ReasonInstallSlow, text)
	})
}

// recordStartSlow records that the start pattern has not matched for long.
func (t *task) recordStartSlow() error {
	text := fmt.Sprintf("no line of the console has matched start_pattern %s since %s", quoted(t.c.Spec.StartPattern), clock(t.o.Server.StartedAt))
	if limit := t.c.Spec.StartTimeout; limit > 0 {
		text += fmt.Sprintf("; the run is stopped after %s", time.Duration(limit))
	}
	return t.report(v1.StartPatternNotMatched, text, func(st *v1.ContainerStatus, now time.Time) {
		setCondition(st, now, v1.StartPatternNotMatched, v1.True, v1.StartPatternNotMatched, text)
	})
}

// recordStartTimeout records that the run is stopped because its start took too long. Its
// exit counts as a crash, so what follows is the same if berth is killed here.
func (t *task) recordStartTimeout() error {
	text := fmt.Sprintf("did not become running within %s", time.Duration(t.c.Spec.StartTimeout))
	if t.c.Spec.StartPattern != "" {
		text += ": no line matched start_pattern " + quoted(t.c.Spec.StartPattern)
	}
	return t.report(v1.ReasonStartTimedOut, text, func(st *v1.ContainerStatus, now time.Time) {
		st.Phase, st.StopRecordedAt, st.StopSent, st.Unrequested = v1.Stopping, now, false, false
		setCondition(st, now, v1.Started, v1.Unknown, v1.ReasonStartTimedOut, text)
	})
}

// clock returns a time of the day for a message. A message stays as it is while time
// passes, so it has no durations.
func clock(t time.Time) string { return t.UTC().Format(time.TimeOnly) + " UTC" }

// maxQuoted bounds a quoted text, in bytes.
const maxQuoted = 200

// quoted returns a text in quotes, cut after maxQuoted bytes.
func quoted(text string) string {
	end := ""
	if len(text) > maxQuoted {
		text, end = strings.ToValidUTF8(text[:maxQuoted], ""), "…"
	}
	if strconv.CanBackquote(text) {
		return "`" + text + end + "`"
	}
	return strconv.Quote(text + end)
}
