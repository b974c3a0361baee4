package fake

import (
	"slices"
	"strings"

	"berth/runtime"
)

// Exit ends the run of n with an exit code. It does nothing if n does not run.
func (w *World) Exit(n runtime.Name, code int) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	w.core.end(n, code)
}

// OOM ends the run of n as out of memory. If the run has ended, it only sets
// OOMKilled.
func (w *World) OOM(n runtime.Name) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	w.core.end(n, 137)
	w.core.containers[n].state.OOMKilled = true
	w.core.change(n)
}

// OOMInside kills a process of n for its memory, and the run of n goes on.
func (w *World) OOMInside(n runtime.Name) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	if b, ok := w.core.containers[n]; ok && b.state.Running {
		b.state.OOMAt, b.state.OOMKilled = w.core.tick(), true
		w.core.change(n)
	}
}

// Vanish removes a container from outside, running or not.
func (w *World) Vanish(n runtime.Name) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	w.core.end(n, 137)
	w.core.forget(n)
}

// StartOutside starts a container from outside. It calls neither OnStart nor the
// functions of Fail and After.
func (w *World) StartOutside(n runtime.Name) error {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	_, _, err := w.core.run(n)
	return err
}

// HoldStart makes the starts of a container return runtime.ErrStarting, and go on until
// ReleaseStart is called.
func (w *World) HoldStart(n runtime.Name) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	if b, ok := w.core.containers[n]; ok {
		b.held = true
	}
}

// ReleaseStart ends the effect of HoldStart. A start that goes on begins a run now.
func (w *World) ReleaseStart(n runtime.Name) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	b, ok := w.core.containers[n]
	if !ok {
		return
	}
	b.held = false
	if b.state.Starting {
		_, _, _ = w.core.run(n)
	}
}

// Lose cuts the machine of a container off: calls return runtime.ErrLost, and the run
// goes on.
func (w *World) Lose(n runtime.Name) { w.lose(n, true) }

// Find ends the effect of Lose.
func (w *World) Find(n runtime.Name) { w.lose(n, false) }

func (w *World) lose(n runtime.Name, lost bool) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	if b, ok := w.core.containers[n]; ok {
		b.lost = lost
		w.core.change(n)
	}
}

// Interrupt ends the run of a container with its machine, or by the machine's operator.
func (w *World) Interrupt(n runtime.Name) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	if b, ok := w.core.containers[n]; ok && (b.state.Running || b.state.Starting) {
		b.state.Interrupted, b.state.Starting = b.state.Running, false
		w.core.end(n, 137)
		b.lost = false
		w.core.change(n)
	}
}

// Pause pauses a container from outside.
func (w *World) Pause(n runtime.Name) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	if b, ok := w.core.containers[n]; ok && b.state.Running {
		b.state.Paused = true
		w.core.change(n)
	}
}

// Detach disconnects a container from the network of the containers.
func (w *World) Detach(n runtime.Name) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	if b, ok := w.core.containers[n]; ok {
		b.state.Detached = true
		w.core.change(n)
	}
}

// Deafen makes n ignore every signal but KILL.
func (w *World) Deafen(n runtime.Name) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	if b, ok := w.core.containers[n]; ok {
		b.ignoresSignals = true
	}
}

// Say appends lines to the output of n; text is split at line ends. Lines have
// times that differ although the clock stands still.
func (w *World) Say(n runtime.Name, text string) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	b, ok := w.core.containers[n]
	if !ok {
		return
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		b.lines = append(b.lines, runtime.Line{Time: w.core.tick(), Data: []byte(line)})
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

// State returns the state of n without calling the function of Fail; the zero
// State if n does not exist.
func (w *World) State(n runtime.Name) runtime.State {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	if b, ok := w.core.containers[n]; ok {
		return b.state
	}
	return runtime.State{}
}

// Spec returns the spec that n was created from; the zero Spec if n does not exist.
func (w *World) Spec(n runtime.Name) runtime.Spec {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	if b, ok := w.core.containers[n]; ok {
		return b.spec
	}
	return runtime.Spec{}
}

// Signals returns the signals that n received.
func (w *World) Signals(n runtime.Name) []string {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	if b, ok := w.core.containers[n]; ok {
		return slices.Clone(b.signals)
	}
	return nil
}

// Ops returns, in order, all calls so far of methods that change something.
func (w *World) Ops() []Op {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	return slices.Clone(w.core.ops)
}
