package stream

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestTransitionLog(t *testing.T) {
	var b bytes.Buffer
	drop := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.MessageKey && a.Value.String() != "a sentence" {
			return slog.Attr{}
		}
		return a
	}
	l := newTransitionLog(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: drop})))
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	one, zero := 1, 0
	exit := v1.Event{Container: "mc", Event: v1.EventState, From: v1.Running, Data: "exit", Reason: "Exited", ExitCode: &one}
	for i, after := range []time.Duration{0, 10 * time.Second, 30 * time.Second, 61 * time.Second} {
		exit.Seq, exit.Time = uint64(i+1), at.Add(after)
		l.write(exit)
		l.write(v1.Event{Seq: exit.Seq, Time: exit.Time, Container: "mc", Event: v1.EventMessage, Data: "a sentence"})
	}
	l.write(v1.Event{Seq: 5, Time: at, Container: "mc", Event: v1.EventState, From: v1.Exit, Data: "starting"})
	l.write(v1.Event{Seq: 6, Time: at, Container: "new", Event: v1.EventState, From: v1.Stopping, Data: "exit", Reason: "Stopped", ExitCode: &one})
	l.write(v1.Event{Seq: 7, Time: at, Container: "job", Event: v1.EventState, From: v1.Running, Data: "exit", Reason: "Exited", ExitCode: &zero})
	l.write(v1.Event{Seq: 8, Time: at, Container: "job", Event: v1.EventState, From: v1.Installing, Data: "failed", Reason: "TimedOut"})
	l.write(v1.Event{Seq: 9, Time: at, Container: "job", Event: v1.EventMessage, Data: "a sentence", Reason: "InstallSlow"})
	l.write(v1.Event{Seq: 10, Time: at, Container: "job", Event: v1.EventState, From: v1.Stopping, Data: "exit", Reason: "StartTimedOut", ExitCode: &zero})
	l.write(v1.Event{Seq: 11, Event: v1.EventRestore, Backup: "b", Restore: "r", Volume: "v", Data: "failed"})
	l.write(v1.Event{Seq: 12, Event: v1.EventPull, Pull: "p", Volume: "v", Data: "completed", Actor: v1.Actor{Name: "alice"}})
	retry := at.Add(time.Minute)
	l.write(v1.Event{Seq: 13, Time: at, Container: "loop", Event: v1.EventState, From: v1.Running, Data: "exit", Reason: "Exited", ExitCode: &one,
		RestartCount: 2, NextRetryAt: &retry})
	require.Equal(t, []string{
		"level=WARN container=mc from=running to=exit seq=1 reason=Exited exit_code=1",
		`level=WARN msg="a sentence" container=mc seq=1`,
		"level=WARN container=mc from=running to=exit seq=4 reason=Exited exit_code=1 repeated=2",
		`level=WARN msg="a sentence" container=mc seq=4 repeated=2`,
		"level=INFO container=mc from=exit to=starting seq=5",
		"level=INFO container=new from=stopping to=exit seq=6 reason=Stopped exit_code=1",
		"level=INFO container=job from=running to=exit seq=7 reason=Exited exit_code=0",
		"level=WARN container=job from=installing to=failed seq=8 reason=TimedOut",
		`level=WARN msg="a sentence" container=job seq=9 reason=InstallSlow`,
		"level=WARN container=job from=stopping to=exit seq=10 reason=StartTimedOut exit_code=0",
		`level=WARN restore=r volume=v to=failed seq=11 actor="" backup=b`,
		"level=INFO pull=p volume=v to=completed seq=12 actor=alice",
		"level=WARN container=loop from=running to=exit seq=13 reason=Exited exit_code=1 restart_count=2 next_retry_at=2026-01-01T00:01:00.000Z",
	}, strings.Split(strings.TrimSpace(b.String()), "\n"))
}
