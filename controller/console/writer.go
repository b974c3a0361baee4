package console

import "sync"

// writer calls work in a goroutine when there is something to write. While there is
// nothing, it has no goroutine: most consoles print nothing most of the time.
type writer struct {
	work func() // writes until nothing is left; one call at a time

	mu      sync.Mutex // never held during work
	running bool
	again   bool // wake was called during work
	calls   sync.WaitGroup
}

// wake makes work run, or run once more if it is running. It does not wait.
func (w *writer) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.again = true
	if !w.running {
		w.running = true
		w.calls.Go(w.run)
	}
}

func (w *writer) run() {
	for w.next() {
		w.work()
	}
}

// next reports whether wake was called since work began last.
func (w *writer) next() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running, w.again = w.again, false
	return w.running
}

// wait waits for all work. Wake must not be called meanwhile.
func (w *writer) wait() { w.calls.Wait() }
