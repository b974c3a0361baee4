package fake

import (
	"slices"
	"strings"

	"berth/runtime"
)

// Fail has f asked before every operation, until it is called again: nothing
// happens if f answers. Nil is nobody.
func (w *World) Fail(f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failing = f
}

// After has f asked after every operation that succeeded, until it is called
// again: what f answers took effect all the same. Nil is nobody.
func (w *World) After(f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.losing = f
}

// Exit ends the run of n from within. It does nothing if there is none.
func (w *World) Exit(n runtime.Name, code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end(n, code)
}

// OOM ends the run of n for want of memory, or says that of one that has ended.
func (w *World) OOM(n runtime.Name) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end(n, 137)
	w.boxes[n].state.OOMKilled = true
	w.change(n)
}

// Vanish is a container removed behind berth's back, running or not.
func (w *World) Vanish(n runtime.Name) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end(n, 137)
	w.forget(n)
}

// StartOutside is a container started behind berth's back. Neither Fail nor
// After nor OnStart are asked.
func (w *World) StartOutside(n runtime.Name) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _, err := w.run(n)
	return err
}

// Pause is a container paused behind berth's back.
func (w *World) Pause(n runtime.Name) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b, ok := w.boxes[n]; ok && b.state.Running {
		b.state.Paused = true
		w.change(n)
	}
}

// Deafen makes n ignore every signal but KILL.
func (w *World) Deafen(n runtime.Name) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b, ok := w.boxes[n]; ok {
		b.deaf = true
	}
}

// Say appends lines to the output of n; text is split at line ends. Lines have
// times that differ although the clock stands still.
func (w *World) Say(n runtime.Name, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b, ok := w.boxes[n]
	if !ok {
		return
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		b.lines = append(b.lines, runtime.Line{Time: w.tick(), Data: []byte(line)})
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

// State returns what Inspect would, without Fail being asked; the zero State
// if there is none.
func (w *World) State(n runtime.Name) runtime.State {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b, ok := w.boxes[n]; ok {
		return b.state
	}
	return runtime.State{}
}

// Spec returns what n was made from; the zero Spec if there is none.
func (w *World) Spec(n runtime.Name) runtime.Spec {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b, ok := w.boxes[n]; ok {
		return b.spec
	}
	return runtime.Spec{}
}

// Signals returns the signals that n got.
func (w *World) Signals(n runtime.Name) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b, ok := w.boxes[n]; ok {
		return slices.Clone(b.signals)
	}
	return nil
}

// Ops returns the operations so far that were tried to change something, in order.
func (w *World) Ops() []Op {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.ops)
}
