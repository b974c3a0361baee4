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

// Foreign makes each image one of another machine, whose platforms text has.
func (w *World) Foreign(text string) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	w.core.otherArch = text
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

// Place puts a container on a machine of a cluster.
func (w *World) Place(n runtime.Name, machine string) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	w.core.containers[n].state.Machine = machine
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

// Evict begins to end the run of a container, as the drain of its machine does: it has its stop timeout to exit.
func (w *World) Evict(n runtime.Name) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	if b, ok := w.core.containers[n]; ok && b.state.Running {
		b.state.Leaving = true
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

// Relabel changes the hash of the spec that a container carries.
func (w *World) Relabel(n runtime.Name, hash string) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	if b, ok := w.core.containers[n]; ok {
		b.state.SpecHash = hash
		w.core.change(n)
	}
}

// Recreate replaces a container that does not run by one of the same spec.
func (w *World) Recreate(n runtime.Name) error {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	s := w.core.containers[n].spec
	w.core.forget(n)
	_, err := w.core.create(s)
	return err
}

// MuteWatch makes every Watch lose what happens from now on, until a new one subscribes.
func (w *World) MuteWatch() {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	for s := range w.core.watchers {
		delete(w.core.watchers, s)
	}
}

// Reads returns how often a method that changes nothing was called, by its name in lower case.
func (w *World) Reads(op string) int {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	return w.core.reads[op]
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
