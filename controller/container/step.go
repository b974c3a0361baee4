package container

import "time"

// Step is one move toward the spec, or a wait.
type Step struct {
	Do        Action
	RequeueAt time.Time // of a wait: look again then, if no signal came before
}

func do(a Action) Step { return Step{Do: a} }

func await(a Action, at time.Time) Step { return Step{Do: a, RequeueAt: at} }

// Action is what a Step does.
type Action uint8

// The actions. Each is safe to repeat, and to be cut short.
const (
	Rest Action = iota // nothing to do until something changes

	RecordInstalling // an installation is wanted: say so
	PullImage        // the image is not on the host
	CreateInstaller  // make the install container
	StartInstaller   // start it
	AwaitInstall     // it runs
	KillInstaller    // it took too long, or is not wanted any more
	FinishInstall    // it has ended: make the server container, and note how it ended
	RemoveInstaller  // it is of no more use

	CreateServer  // make the server container
	RecordCreated // it stands ready: show its id
	RemoveServer  // it was made from an older spec
	UpdateLimits  // change its limits live

	StartServer    // record the start, then try it
	RecordEngine   // it runs on under another instance of the engine: record that
	RecordStarting // it was started from outside, as wanted
	AwaitMatch     // it runs, and has not matched its start pattern
	RecordRunning  // it has
	Unpause        // it was paused from outside

	RecordStopping // it must end: say so
	SendStop       // send the signal or the command
	AwaitStop      // it was asked to end
	AwaitEngine    // it has exited, and the engine may be about to end
	AwaitOutput    // it has ended, and its last output is being read
	KillServer     // recordExit it without grace
	RecordExit     // it has ended: note how
	RecordOOM      // it ran out of memory, as the engine says now
	AwaitRetry     // it will be started again

	RecordPressure // the volume is over its limit, or no longer: say so
	AwaitSpace     // it is, and what runs has a grace

	RecordDeleting // it is to go: say so
	Forget         // nothing is left on the host: purge the object
)

var actionNames = [...]string{
	"rest", "note installing", "pull image", "make installer", "start installer", "await install",
	"kill installer", "finish install", "remove installer", "make server", "note made", "remove server", "update limits",
	"start server", "note engine", "note starting", "await match", "note running", "unpause", "note stopping", "send stop",
	"await stop", "await engine", "await output", "kill server", "note exit", "note oom", "await retry", "note pressure", "await space", "note deleting", "forget",
}

// String is the action in words.
func (a Action) String() string { return actionNames[a] }
