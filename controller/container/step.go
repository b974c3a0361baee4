package container

import (
	"context"
	"strings"
	"time"

	"berth/controller"
)

// Step is one step of a container toward its spec. It is safe to repeat and to interrupt.
type Step struct {
	Name string    // the label of berth_step_failures_total, and the reason of a failed step
	At   time.Time // of a wait: the time of the next observation without a signal; zero: none

	// run takes the step. The zero Result means that the next step follows at once.
	run       func(t *task, ctx context.Context) (controller.Result, error)
	ends      bool // no step follows before a signal, or before At
	expensive bool // it creates, starts or removes a container, and needs a permit
	starts    bool // it comes before the other expensive ones
}

// is reports whether two steps are the same, whenever they are taken.
func (s Step) is(other Step) bool { return s.Name == other.Name }

// until returns a wait that ends at a time.
func (s Step) until(at time.Time) Step {
	s.At = at
	return s
}

// failureReason returns the reason of the condition Reconciled after a failure of the step,
// such as KillServerFailed.
func (s Step) failureReason() string {
	var b strings.Builder
	for word := range strings.FieldsSeq(s.Name) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String() + "Failed"
}

// The steps, which Steps lists.
var (
	// Rest: nothing to do until something changes.
	Rest = Step{Name: "rest", run: (*task).rest, ends: true}

	// An installation.

	RecordInstalling = Step{Name: "record installing", run: recording((*task).recordInstalling)}
	// the image is not on the host
	PullImage       = Step{Name: "pull image", run: (*task).pullMissing}
	CreateInstaller = Step{Name: "create installer", run: (*task).createInstaller, expensive: true}
	StartInstaller  = Step{Name: "start installer", run: (*task).startInstaller, expensive: true, starts: true}
	// the installer runs
	AwaitInstall = Step{Name: "await install", run: (*task).await, ends: true}
	// it has run for long
	RecordInstallSlow = Step{Name: "record install slow", run: recording((*task).recordInstallSlow)}
	// it took too long, or its installation is no longer requested
	KillInstaller = Step{Name: "kill installer", run: calling((*task).killInstaller)}
	// it exited: create the server container, and record the result
	FinishInstall   = Step{Name: "finish install", run: (*task).finishInstall, expensive: true}
	RemoveInstaller = Step{Name: "remove installer", run: calling((*task).removeInstaller), expensive: true}

	// The server container.

	// pull the image of a server that is about to start
	RefreshImage = Step{Name: "refresh image", run: (*task).refreshImage}
	CreateServer = Step{Name: "create server", run: (*task).createServer, expensive: true}
	// record the id of the new server container
	RecordCreated = Step{Name: "record created", run: recording((*task).recordCreated)}
	// it was created from an older spec
	RemoveServer = Step{Name: "remove server", run: (*task).removeServer, expensive: true}
	// of the existing container
	UpdateLimits = Step{Name: "update limits", run: calling((*task).updateLimits)}
	// it was disconnected from outside
	ConnectServer = Step{Name: "connect server", run: calling((*task).connectServer)}

	// A run.

	// before its volume is prepared and the engine starts it
	RecordStart = Step{Name: "record start", run: calling((*task).recordStart)}
	// give it to the account, and set config files: without a permit
	PrepareVolume = Step{Name: "prepare volume", run: (*task).prepareVolume}
	// call the engine
	StartServer = Step{Name: "start server", run: (*task).startServer, expensive: true, starts: true}
	// the run continues under another instance of the engine
	RecordEngine = Step{Name: "record engine", run: recording((*task).recordEngine)}
	// a start that took long has begun a run
	RecordBegun = Step{Name: "record begun", run: recording((*task).recordBegun)}
	// a requested run was started from outside
	RecordStarting = Step{Name: "record starting", run: recording((*task).recordStarting)}
	// the run has not matched its start pattern
	AwaitMatch = Step{Name: "await match", run: (*task).await, ends: true}
	// it has not for long
	RecordStartSlow = Step{Name: "record start slow", run: recording((*task).recordStartSlow)}
	// it has not within its time: it is stopped
	RecordStartTimeout = Step{Name: "record start timeout", run: recording((*task).recordStartTimeout)}
	// the kernel killed a process: does the run go on?
	AwaitSurvival = Step{Name: "await survival", run: (*task).await, ends: true}
	// it does
	RecordProcessKilled = Step{Name: "record process killed", run: recording((*task).recordProcessKilled)}
	// the start pattern matched
	RecordRunning = Step{Name: "record running", run: recording((*task).recordRunning), ends: true}
	// the container was paused from outside
	Unpause = Step{Name: "unpause", run: calling((*task).unpause)}

	// The end of a run.

	RecordStopping = Step{Name: "record stopping", run: recording((*task).recordStopping)}
	SendStop       = Step{Name: "send stop", run: calling((*task).sendStop)}
	// the grace period is not over
	AwaitStop = Step{Name: "await stop", run: (*task).await, ends: true}
	// the container exited, and the engine may be shutting down
	AwaitEngine = Step{Name: "await engine", run: (*task).awaitEngine, ends: true}
	// the container exited, and its last output is being read
	AwaitOutput = Step{Name: "await output", run: (*task).awaitOutput, ends: true}
	// the container was killed, and the engine may report that it ran out of memory
	AwaitCause = Step{Name: "await cause", run: (*task).await, ends: true}
	KillServer = Step{Name: "kill server", run: calling((*task).killServer)}
	RecordExit = Step{Name: "record exit", run: recording((*task).recordExit)}
	// correct a recorded exit: the run ran out of memory
	RecordOOM = Step{Name: "record oom", run: recording((*task).recordOOM)}
	// the backoff is not over
	AwaitRetry = Step{Name: "await retry", run: (*task).await, ends: true}

	// A machine of an engine of many hosts.

	// it does not answer, or answers again
	RecordReach = Step{Name: "record reach", run: recording((*task).recordReach)}
	// it does not answer: the container may run on
	AwaitMachine = Step{Name: "await machine", run: (*task).awaitMachine, ends: true}

	// The volume, and the deletion.

	// the begin or the end of disk pressure
	RecordPressure = Step{Name: "record pressure", run: recording((*task).recordPressure)}
	// under disk pressure: the grace period of the run is not over
	AwaitSpace = Step{Name: "await space", run: (*task).await, ends: true}
	// the directory of the volume is missing, or is there again
	RecordVolume   = Step{Name: "record volume", run: recording((*task).recordVolumeReady)}
	RecordDeleting = Step{Name: "record deleting", run: recording((*task).recordDeleting)}
	// nothing is left on the host: purge the object
	Forget = Step{Name: "forget", run: calling((*task).forget), ends: true}
)

// Steps returns all steps.
func Steps() []Step {
	return []Step{
		Rest, RecordInstalling, PullImage, CreateInstaller, StartInstaller, AwaitInstall, RecordInstallSlow, KillInstaller,
		FinishInstall, RemoveInstaller, RefreshImage, CreateServer, RecordCreated, RemoveServer, UpdateLimits,
		ConnectServer, RecordStart, PrepareVolume, StartServer, RecordEngine, RecordBegun, RecordStarting, AwaitMatch,
		RecordStartSlow, RecordStartTimeout, AwaitSurvival, RecordProcessKilled, RecordRunning, Unpause, RecordStopping,
		SendStop, AwaitStop, AwaitEngine, AwaitOutput, AwaitCause, KillServer, RecordExit, RecordOOM, AwaitRetry,
		RecordReach, AwaitMachine, RecordPressure, AwaitSpace, RecordVolume, RecordDeleting, Forget,
	}
}

// recording returns the run of a step that only records.
func recording(record func(*task) error) func(*task, context.Context) (controller.Result, error) {
	return func(t *task, _ context.Context) (controller.Result, error) { return controller.Result{}, record(t) }
}

// calling returns the run of a step that the next one follows.
func calling(call func(*task, context.Context) error) func(*task, context.Context) (controller.Result, error) {
	return func(t *task, ctx context.Context) (controller.Result, error) {
		return controller.Result{}, call(t, ctx)
	}
}

// waitFor returns the result of a step that waits for a resource which another
// container or the puller holds. The container is observed again after d.
func waitFor(d time.Duration) controller.Result {
	return controller.Result{Waiting: true, RequeueAfter: max(d, time.Millisecond)}
}

// rest ends the work on a container that is as requested.
func (t *task) rest(context.Context) (controller.Result, error) {
	t.Pulls.Forget(t.c.Meta.ID) // a result that it did not receive is not that of its next start
	return controller.Result{}, t.markObserved()
}

// await waits for a signal, or for the time of the step.
func (t *task) await(context.Context) (controller.Result, error) {
	return t.requeue(), t.markObserved()
}

// awaitEngine is neither a success nor a failure of the container.
func (t *task) awaitEngine(context.Context) (controller.Result, error) {
	return waitFor(t.step.At.Sub(t.o.Now)), nil
}

// awaitOutput waits while the phase is still that of the exited run, so the spec must not
// count as observed.
func (t *task) awaitOutput(context.Context) (controller.Result, error) { return t.requeue(), nil }

// awaitMachine waits for the engine's report that the machine answers, or is off. The spec does
// not count as observed.
func (t *task) awaitMachine(context.Context) (controller.Result, error) {
	return controller.Result{}, nil
}

func (t *task) requeue() controller.Result {
	if t.step.At.IsZero() {
		return controller.Result{}
	}
	return controller.Result{RequeueAfter: max(t.step.At.Sub(t.o.Now), time.Millisecond)}
}
