package container

import "time"

// Step is one step of a container toward its spec.
type Step struct {
	Do        Action
	RequeueAt time.Time // of a wait: the time of the next observation without a signal
}

func do(a Action) Step { return Step{Do: a} }

func await(a Action, at time.Time) Step { return Step{Do: a, RequeueAt: at} }

// Action is the action of a Step.
type Action uint8

// The actions. Each is safe to repeat and to interrupt.
const (
	Rest Action = iota // nothing to do until something changes

	RecordInstalling // record the begin of an installation
	PullImage        // the image is not on the host
	CreateInstaller
	StartInstaller
	AwaitInstall      // the installer runs
	RecordInstallSlow // it has run for long
	KillInstaller     // it took too long, or its installation is no longer requested
	FinishInstall     // it exited: create the server container, and record the result
	RemoveInstaller   // its result is recorded, or it belongs to an older installation

	RefreshImage // pull the image of a server that is about to start
	CreateServer
	RecordCreated // record the id of the new server container
	RemoveServer  // it was created from an older spec
	UpdateLimits  // of the existing container

	StartServer        // record the start, then call the engine
	RecordEngine       // record that the run continues under another instance of the engine
	RecordStarting     // record a requested run that was started from outside
	AwaitMatch         // the run has not matched its start pattern
	RecordStartSlow    // it has not for long
	RecordStartTimeout // it has not within its time: record that the run is stopped
	RecordRunning      // the start pattern matched
	Unpause            // the container was paused from outside

	RecordStopping // record the begin of a graceful stop
	SendStop       // send the stop signal or command
	AwaitStop      // the grace period is not over
	AwaitEngine    // the container exited, and the engine may be shutting down
	AwaitOutput    // the container exited, and its last output is being read
	KillServer     // end the run without a grace period
	RecordExit     // record how the run ended
	RecordOOM      // correct a recorded exit: the run ran out of memory
	AwaitRetry     // the backoff is not over

	RecordPressure // record the begin or the end of disk pressure
	AwaitSpace     // under disk pressure: the grace period of the run is not over
	RecordVolume   // record that the directory of the volume is missing, or is there again

	RecordDeleting // record the begin of a deletion
	Forget         // nothing is left on the host: purge the object

	numActions
)

// String returns the name of the action: the label of berth_step_failures_total, and
// the reason of a failed step.
func (a Action) String() string {
	return [numActions]string{
		Rest:               "rest",
		RecordInstalling:   "record installing",
		PullImage:          "pull image",
		CreateInstaller:    "create installer",
		StartInstaller:     "start installer",
		AwaitInstall:       "await install",
		RecordInstallSlow:  "record install slow",
		KillInstaller:      "kill installer",
		FinishInstall:      "finish install",
		RemoveInstaller:    "remove installer",
		RefreshImage:       "refresh image",
		CreateServer:       "create server",
		RecordCreated:      "record created",
		RemoveServer:       "remove server",
		UpdateLimits:       "update limits",
		StartServer:        "start server",
		RecordEngine:       "record engine",
		RecordStarting:     "record starting",
		AwaitMatch:         "await match",
		RecordStartSlow:    "record start slow",
		RecordStartTimeout: "record start timeout",
		RecordRunning:      "record running",
		Unpause:            "unpause",
		RecordStopping:     "record stopping",
		SendStop:           "send stop",
		AwaitStop:          "await stop",
		AwaitEngine:        "await engine",
		AwaitOutput:        "await output",
		KillServer:         "kill server",
		RecordExit:         "record exit",
		RecordOOM:          "record oom",
		AwaitRetry:         "await retry",
		RecordPressure:     "record pressure",
		AwaitSpace:         "await space",
		RecordVolume:       "record volume",
		RecordDeleting:     "record deleting",
		Forget:             "forget",
	}[a]
}

// actionNames returns the names of all actions.
func actionNames() []string {
	names := make([]string, numActions)
	for a := range numActions {
		names[a] = a.String()
	}
	return names
}

// expensive reports whether an action needs a permit.
func (a Action) expensive() bool {
	switch a {
	case CreateInstaller, StartInstaller, FinishInstall, RemoveInstaller, CreateServer, RemoveServer, StartServer:
		return true
	}
	return false
}

// creates reports whether an action creates a container, which may have to run.
func (a Action) creates() bool {
	return a == CreateInstaller || a == FinishInstall || a == CreateServer
}

// starts reports whether an action starts a container.
func (a Action) starts() bool { return a == StartInstaller || a == StartServer }
