package conform

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/runtime"
)

// Engine has the methods that the suite tests.
type Engine interface {
	observer
	lifecycle
	updater
	images
	console
}

type observer interface {
	Instance(ctx context.Context) (string, error)
	Inspect(ctx context.Context, n runtime.Name) (runtime.State, error)
	List(ctx context.Context) ([]runtime.Found, error)
	Watch(ctx context.Context, listed func([]runtime.Found), notify func(runtime.Name)) error
}

type lifecycle interface {
	Create(ctx context.Context, s runtime.Spec) (containerID string, err error)
	Start(ctx context.Context, n runtime.Name) error
	Signal(ctx context.Context, n runtime.Name, signal string) error
	Kill(ctx context.Context, n runtime.Name) error
	Remove(ctx context.Context, n runtime.Name) error
}

type updater interface {
	Update(ctx context.Context, n runtime.Name, l runtime.Live) error
	Unpause(ctx context.Context, n runtime.Name) error
}

type images interface {
	ImageID(ctx context.Context, ref string) (string, error)
	Pull(ctx context.Context, ref string, auth runtime.Auth, progress func(runtime.Progress)) error
}

type console interface {
	Logs(ctx context.Context, t runtime.Target, since time.Time, each func(runtime.Line) error) error
	Input(ctx context.Context, containerID string, data []byte) error
	Stats(ctx context.Context, containerID string) (runtime.Stats, error)
}

// The commands of the suite's containers. Tests of a fake engine imitate them.
var (
	Sleeps     = []string{"sleep", "100000"}                                                       // runs until a signal
	ExitsWith3 = []string{"sh", "-c", "exit 3"}                                                    // exits at once
	SaysThree  = []string{"sh", "-c", "echo one; echo two; echo three"}                            // prints, and exits with 0
	SaysOne    = []string{"sh", "-c", "echo one; sleep 100000"}                                    // prints, and keeps running
	Echoes     = []string{"cat"}                                                                   // prints its input, line by line
	EatsMemory = []string{"sh", "-c", "(x=x; while true; do x=$x$x$x$x$x; done); sleep 1; exit 9"} // allocates until its child is killed
	Ignores    = []string{"sh", "-c", "trap '' TERM; while true; do sleep 1; done"}                // ignores SIGTERM

	// ShowsLimits prints the limits of its cgroup for each line of input: memory, quota and
	// period of the processor, and pids, as the kernel writes them.
	ShowsLimits = []string{"sh", "-c", `cd /sys/fs/cgroup; while read line; do
		if [ -e memory.max ]; then echo $(cat memory.max cpu.max pids.max)
		else echo $(cat memory/memory.limit_in_bytes cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us pids/pids.max); fi; done`}
)

// Harness is one engine and its host.
type Harness struct {
	Engine Engine
	Lacks  []runtime.Capability // of the engine: the suite checks that it refuses what needs them
	Image  string               // on the host

	Pullable string // in a registry, not on the host
	Missing  string // neither on the host nor in its registry
	Locked   string // in a registry that requires Auth
	Auth     runtime.Auth

	Dir     func(t *testing.T) string                  // creates a directory of the host
	DropDir func(t *testing.T, dir string)             // removes it
	Port    func(t *testing.T) int                     // returns a port that is free on 127.0.0.1
	Occupy  func(t *testing.T, port int) (free func()) // binds a TCP port of 127.0.0.1

	// These act on a container without the Engine. Pause is nil for an engine that lacks it.
	Pause   func(t *testing.T, n runtime.Name)
	Vanish  func(t *testing.T, n runtime.Name) // removes it by force
	Outside func(t *testing.T, n runtime.Name) // starts it
	// runs another store's container under its name; untouched checks that it did not change
	Foreign func(t *testing.T, n runtime.Name) (untouched func())
}

// Run runs the suite.
func Run(t *testing.T, h *Harness) {
	for name, test := range map[string]func(*testing.T, *Harness){
		"absent":                    absent,
		"instance":                  instance,
		"create":                    create,
		"create again":              createAgain,
		"create at once":            createAtOnce,
		"create another":            createAnother,
		"roles":                     roles,
		"start":                     start,
		"kill":                      kill,
		"signal":                    signal,
		"remove":                    remove,
		"exit code":                 exitCode,
		"out of memory":             outOfMemory,
		"mount missing":             mountMissing,
		"port taken":                portTaken,
		"lacking":                   lacking,
		"update":                    update,
		"update refused":            updateRefused,
		"paused":                    paused,
		"vanished":                  vanished,
		"started outside":           startedOutside,
		"foreign":                   foreign,
		"list":                      list,
		"watch":                     watch,
		"logs":                      logs,
		"logs follow":               logsFollow,
		"logs of what is not there": logsOfNothing,
		"input":                     input,
		"input to the dead":         inputToTheDead,
		"stats":                     stats,
		"image":                     image,
		"pull":                      pull,
		"pull refused":              pullRefused,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, h)
		})
	}
}

// able reports whether the engine has a capability.
func (h *Harness) able(c runtime.Capability) bool { return !slices.Contains(h.Lacks, c) }

// limits returns l without the limits that the engine lacks.
func (h *Harness) limits(l runtime.Live) runtime.Live {
	if !h.able(runtime.CanSwap) {
		l.Swap = 0
	}
	if !h.able(runtime.CanPids) {
		l.Pids = 0
	}
	if !h.able(runtime.CanCpuset) {
		l.Cpuset = ""
	}
	return l
}

// spec returns the spec of a new server container.
func (h *Harness) spec(command []string) runtime.Spec {
	name := runtime.Name{ID: "c" + strings.ToLower(rand.Text()[:12]), Role: runtime.Server}
	return runtime.Spec{Name: name, SpecHash: "1", Image: h.Image, Command: command}
}

// create creates a container. It is killed and removed at the end of the test.
func (h *Harness) create(t *testing.T, s runtime.Spec) (id string) {
	t.Helper()
	id, err := h.Engine.Create(t.Context(), s)
	require.NoError(t, err)
	h.clean(t, s.Name)
	return id
}

func (h *Harness) clean(t *testing.T, n runtime.Name) {
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		require.NoError(t, h.Engine.Kill(ctx, n))
		require.NoError(t, h.Engine.Remove(ctx, n))
	})
}

// createAndStart creates and starts a container.
func (h *Harness) createAndStart(t *testing.T, s runtime.Spec) (id string) {
	t.Helper()
	id = h.create(t, s)
	h.start(t, s.Name)
	return id
}

// start starts a container. An engine of many hosts may need more than one call for it.
func (h *Harness) start(t *testing.T, n runtime.Name) {
	t.Helper()
	await(t, "a start", func() bool {
		err := h.Engine.Start(t.Context(), n)
		if errors.Is(err, runtime.ErrStarting) {
			return false
		}
		require.NoError(t, err)
		return true
	})
}

// inspect inspects a container, which must exist.
func (h *Harness) inspect(t *testing.T, n runtime.Name) runtime.State {
	t.Helper()
	s, err := h.Engine.Inspect(t.Context(), n)
	require.NoError(t, err)
	return s
}

// awaitExit waits until a run has exited.
func (h *Harness) awaitExit(t *testing.T, n runtime.Name) (s runtime.State) {
	t.Helper()
	await(t, "the exit of a run", func() bool {
		s = h.inspect(t, n)
		return !s.Running && !s.StartedAt.IsZero()
	})
	return s
}

// await polls until done returns true.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	late := time.NewTimer(2 * time.Minute) // a busy host is slow
	defer late.Stop()
	for !done() {
		select {
		case <-again.C:
		case <-late.C:
			require.Fail(t, "timed out waiting for "+what)
		}
	}
}
