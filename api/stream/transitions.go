package stream

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	v1 "berth/api/v1"
	"berth/store"
)

// Run publishes, logs and counts each transition that is stored from now on, until ctx ends. Where
// it has to leave some out, every listener ends with ErrSlow, for its client to
// read them from the store. Its error is store.ErrClosed.
func (h *Hub) Run(ctx context.Context, s *store.Store) error {
	transitions := newTransitionLog(h.log)
	for ctx.Err() == nil {
		_, newest := s.Read().EventBounds()
		h.Missed() // nobody here receives what was stored up to newest
		for e, err := range s.Events(ctx, newest) {
			if errors.Is(err, store.ErrClosed) {
				return err
			}
			if err != nil {
				h.log.Error("transitions were not published; sockets are closed, and their clients resume", "after", newest, "err", err)
				break
			}
			newest = e.Seq
			h.Event(e)
			h.events.WithLabelValues(eventLabel(e)).Inc()
			transitions.write(e)
		}
	}
	return nil
}

// otherEvent is the label of a transition to an unknown state, so that the number of series is bounded.
const otherEvent = "other"

// eventKinds returns the kinds of transitions that are no states of containers.
func eventKinds() []string {
	return []string{v1.EventMessage, v1.EventBackup, v1.EventRestore, v1.EventPull, v1.EventSchedule, v1.EventTransfer}
}

// newEventCounter returns the counter of transitions. Its label is the state of a transition of a
// container, or else the kind of the event.
func newEventCounter() *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "berth_events_total",
		Help: "Stored transitions, by the state of a container, or daemon_message, backup, restore, pull, schedule or transfer."},
		[]string{"event"})
	for _, p := range v1.Phases() {
		c.WithLabelValues(string(p))
	}
	for _, kind := range eventKinds() {
		c.WithLabelValues(kind)
	}
	return c
}

func eventLabel(e v1.Event) string {
	switch {
	case slices.Contains(eventKinds(), e.Event):
		return e.Event
	case e.Event == v1.EventState && slices.Contains(v1.Phases(), v1.Phase(e.Data)):
		return e.Data
	}
	return otherEvent
}

// foldTime is the time within which the same transition of a container is logged
// once. The next line counts the others.
const foldTime = time.Minute

// maxFolded bounds the transitions that transitionLog remembers.
const maxFolded = 10_000

// transitionLog writes a line for each transition and each stored message of a container, backup, restore, download, schedule or
// transfer: at warn for a failure and an exit that nobody asked for, else at info. It is for one goroutine.
type transitionLog struct {
	log    *slog.Logger
	folded map[transitionKey]*folded
}

type transitionKey struct {
	container, object, reason string // object is a schedule or a transfer
	actor                     v1.Actor
	from                      v1.Phase
	data                      string
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
	key := transitionKey{e.Container, e.Schedule + e.Transfer, e.Reason, e.Actor, e.From, e.Data}
	seen := l.folded[key]
	if seen != nil && e.Time.Sub(seen.logged) < foldTime {
		seen.more++
		return
	}
	text, args := "container changed its state", []any{"container", e.Container, "from", e.From, "to", e.Data, "seq", e.Seq}
	if e.Event == v1.EventSchedule {
		text, args = "schedule changed its state", []any{"container", e.Container, "schedule", e.Schedule, "to", e.Data, "seq", e.Seq}
	} else if e.Event == v1.EventTransfer {
		text, args = "transfer changed its state", []any{"container", e.Container, "transfer", e.Transfer, "to", e.Data, "seq", e.Seq}
	} else if e.Event != v1.EventState {
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
	case (e.Job() != "" || e.Event == v1.EventSchedule || e.Event == v1.EventTransfer) && e.Data != string(v1.JobFailed):
		return slog.LevelInfo
	case e.Event != v1.EventState, e.Data == string(v1.Failed), e.Reason == v1.ReasonStartTimedOut,
		e.Data == string(v1.Exit) && e.Reason != "Stopped" && e.Reason != "Killed" && (e.ExitCode == nil || *e.ExitCode != 0):
		return slog.LevelWarn
	}
	return slog.LevelInfo
}
