package console

import (
	"context"
	"time"

	v1 "berth/api/v1"
	"berth/runtime"
)

// Target is a run whose output is wanted.
type Target = runtime.Target

// key names a console.
type key struct {
	id   string
	role runtime.Role
}

// run tells one run of a container from another.
type run struct {
	containerID string
	startedAt   int64
}

func keyOf(t Target) key { return key{t.ID, t.Role} }

func runOf(t Target) run { return run{t.ContainerID, t.StartedAt.UnixNano()} }

// fromOf returns the time that no line of the run is older than. A start that
// was noted after the engine carried it out was noted by another clock.
func fromOf(t Target) time.Time {
	if !t.StartedAt.IsZero() && (t.From.IsZero() || t.From.After(t.StartedAt)) {
		return t.StartedAt.Add(-time.Second)
	}
	return t.From
}

// Engine is what a console needs of an engine.
type Engine interface {
	Logs(ctx context.Context, t runtime.Target, since time.Time, each func(runtime.Line) error) error
	Input(ctx context.Context, containerID string, data []byte) error
}

// Sink keeps lines and hands them to whoever listens. A console is written by
// one goroutine at a time. Role is v1.ServerConsole or v1.InstallConsole.
type Sink interface {
	// Begin says where the journal ends, and notes which container is read now.
	Begin(id, role, containerID string) (v1.Resume, error)
	// Append adds lines, and keeps none of their bytes. After an error they were
	// handed on, but not kept.
	Append(id, role string, lines []v1.Line) error
	// End lets go of the console. Whole: all that the container printed is kept.
	End(id, role string, whole bool) error
	// Since hands out the first line that is not older than a time and all behind
	// it, until each is false.
	Since(ctx context.Context, id, role string, since time.Time, each func(v1.Line) bool) error
	// Remove forgets all of a container's lines.
	Remove(id string) error
}
