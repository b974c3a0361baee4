package console

import (
	"context"
	"time"

	v1 "berth/api/v1"
	"berth/runtime"
)

// Target is a run whose output is read.
type Target = runtime.Target

// key identifies a console.
type key struct {
	id   string
	role runtime.Role
}

// run identifies one run of a container.
type run struct {
	containerID string
	startedAt   int64 // Unix time in nanoseconds
}

func keyOf(t Target) key { return key{t.ID, t.Role} }

func runOf(t Target) run { return run{t.ContainerID, t.StartedAt.UnixNano()} }

// fromOf returns a time that no line of the run is older than: t.From, or a second before
// StartedAt if From is missing or later. From is later only if the clock was set back.
func fromOf(t Target) time.Time {
	if !t.StartedAt.IsZero() && (t.From.IsZero() || t.From.After(t.StartedAt)) {
		return t.StartedAt.Add(-time.Second)
	}
	return t.From
}

// Engine reads the output of containers and writes their input.
type Engine interface {
	Logs(ctx context.Context, t runtime.Target, since time.Time, each func(runtime.Line) error) error
	Input(ctx context.Context, containerID string, data []byte) error
	Resize(ctx context.Context, containerID string, columns, rows uint) error
}

// Sink stores lines in a journal and passes them to listeners. At most one goroutine
// writes to a console at a time. The role is v1.ServerConsole or v1.InstallConsole.
type Sink interface {
	// Begin returns the position where the journal ends, and records which container
	// is read from now on.
	Begin(id, role, containerID string) (v1.Resume, error)
	// Append adds lines. It retains none of their bytes. After an error
	// the lines are lost, and no listener receives them.
	Append(id, role string, lines []v1.Line) error
	// End releases the console. complete reports that the journal has all of the
	// output of the container.
	End(id, role string, complete bool) error
	// Since calls each for the first line that is not older than since, and for all
	// lines after it, until each returns false.
	Since(ctx context.Context, id, role string, since time.Time, each func(v1.Line) bool) error
	// Remove removes all lines of a container.
	Remove(id string) error
}
