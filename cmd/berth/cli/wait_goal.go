package cli

import (
	"berth/api/client"
	v1 "berth/api/v1"
)

// deleted is the state for `berth wait` of a container that does not exist any more.
const deleted = "deleted"

// waitStates returns the states that a container stays in, for `berth wait`.
func waitStates() []string {
	return []string{string(v1.Ready), string(v1.Running), string(v1.Exit), string(v1.Failed), deleted}
}

// passing returns the reason why nobody can wait for a state; empty: there is no such state.
func passing(state string) string {
	switch v1.Phase(state) {
	case v1.Installing, v1.Starting, v1.Stopping:
		return "containers pass through it; "
	}
	return ""
}

// goal is what a command waits for.
type goal struct {
	name   string     // "running", or "stopped"
	states []v1.Phase // any of them; none: the container is deleted
}

// goalOf returns the goal of an action.
func goalOf(a client.Action) goal {
	switch a {
	case client.Stop, client.Kill:
		return goal{"stopped", []v1.Phase{v1.Exit, v1.Ready, v1.Failed}}
	case client.Reinstall:
		return goal{"ready", []v1.Phase{v1.Ready}}
	}
	return goal{"running", []v1.Phase{v1.Running}}
}
