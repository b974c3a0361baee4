package stream

import (
	"context"
	"log/slog"
	"time"

	v1 "berth/api/v1"
)

// foldTime is the time within which the same transition of a container is logged
// once. The next line counts the others.
const foldTime = time.Minute

// maxFolded bounds the transitions that transitionLog remembers.
const maxFolded = 10_000

// transitionLog writes a line for each transition and each stored message of a container, backup, restore or download: at warn
// for a failure and an exit that nobody asked for, else at info. It is for one goroutine.
type transitionLog struct {
	log    *slog.Logger
	folded map[transitionKey]*folded
}

type transitionKey struct {
	container, reason string
	actor             v1.Actor
	from              v1.Phase
	data              string
}

type folded struct {
	logged time.Time
	more   int // transitions since then
}

func newTransitionLog(log *slog.Logger) *transitionLog {
	return &transitionLog{log: log, folded: map[transitionKey]*folded{}}
}

func (l *transitionLog) write(e v1.Event) {
	if e.Job() != "" {
		args := []any{e.Event, e.Job(), "volume", e.Volume, "to", e.Data, "seq", e.Seq, "actor", e.Actor.String()}
		if e.Restore != "" {
			args = append(args, "backup", e.Backup)
		}
		l.log.Log(context.Background(), transitionLevel(e), e.Event+" changed its state", args...)
		return
	}
	if e.Container == "" {
		return // of the node: logged where it was noticed
	}
	key := transitionKey{e.Container, e.Reason, e.Actor, e.From, e.Data}
	seen := l.folded[key]
	if seen != nil && e.Time.Sub(seen.logged) < foldTime {
		seen.more++
		return
	}
	text, args := "container changed its state", []any{"container", e.Container, "from", e.From, "to", e.Data, "seq", e.Seq}
	if e.Event != v1.EventState {
		text, args = e.Data, []any{"container", e.Container, "seq", e.Seq}
	}
	if e.Actor != (v1.Actor{}) {
		args = append(args, "actor", e.Actor.String())
	}
	if e.Reason != "" {
		args = append(args, "reason", e.Reason)
	}
	if e.ExitCode != nil {
		args = append(args, "exit_code", *e.ExitCode)
	}
	if e.NextRetryAt != nil {
		args = append(args, "restart_count", e.RestartCount, "next_retry_at", e.NextRetryAt.UTC())
	}
	if seen != nil && seen.more > 0 {
		args = append(args, "repeated", seen.more)
	}
	l.log.Log(context.Background(), transitionLevel(e), text, args...)
	if len(l.folded) >= maxFolded {
		clear(l.folded)
	}
	l.folded[key] = &folded{logged: e.Time}
}

// transitionLevel returns warn for a failure, for an exit that nobody asked for, and for
// a message: each that is stored names a problem, often the cause of the next exit.
func transitionLevel(e v1.Event) slog.Level {
	switch {
	case e.Job() != "" && e.Data != string(v1.JobFailed):
		return slog.LevelInfo
	case e.Event != v1.EventState, e.Data == string(v1.Failed), e.Reason == v1.ReasonStartTimedOut,
		e.Data == string(v1.Exit) && e.Reason != "Stopped" && e.Reason != "Killed" && (e.ExitCode == nil || *e.ExitCode != 0):
		return slog.LevelWarn
	}
	return slog.LevelInfo
}
