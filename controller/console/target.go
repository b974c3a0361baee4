package console

import (
	"context"
	"strconv"
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

// hasBegun reports whether t is a run. A container that was never started, or is starting, has
// no output.
func hasBegun(t Target) bool { return t.ContainerID != "" && !t.StartedAt.IsZero() }

// logOf returns the id of the log that has the output of t.
func logOf(t Target) string {
	if t.OwnLog {
		return t.ContainerID + " " + strconv.FormatInt(t.StartedAt.UnixNano(), 10)
	}
	return t.ContainerID
}

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
	Inspect(ctx context.Context, n runtime.Name) (runtime.State, error)
	Logs(ctx context.Context, t runtime.Target, since time.Time, each func(runtime.Line) error) error
	Input(ctx context.Context, containerID string, data []byte) error
	Resize(ctx context.Context, containerID string, columns, rows uint) error
}

// Sink stores lines in a journal and passes them to listeners. At most one goroutine
// writes to a console at a time. The role is v1.ServerConsole or v1.InstallConsole.
type Sink interface {
	// Begin returns the position where the journal ends, and records which container
	// is read from now on, or which run of it if each has a log of its own.
	Begin(id, role, containerID string) (v1.Resume, error)
	// Append adds lines. It retains none of their bytes. After an error
	// the lines are lost, and no listener receives them.
	Append(id, role string, lines []v1.Line) error
	// Release closes the journal of the console until the next Append.
	Release(id string) error
	// Finish is Release, and records that the journal has all of the output of the
	// container of a role.
	Finish(id, role string) error
	// Since calls each for the first line that is not older than since, and for all
	// lines after it, until each returns false.
	Since(ctx context.Context, id, role string, since time.Time, each func(v1.Line) bool) error
	// Current calls each for all lines of what Begin has named last, until each returns false.
	Current(ctx context.Context, id, role string, each func(v1.Line) bool) error
	// Remove removes all lines of a container.
	Remove(id string) error
}
