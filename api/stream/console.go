package stream

import (
	"context"
	"errors"
	"time"

	v1 "berth/api/v1"
)

// roles returns the consoles of a container.
func roles() []string { return []string{v1.InstallConsole, v1.ServerConsole} }

// console returns a console, and opens its journal at the first call.
func (h *Hub) console(id, role string) (*log, error) {
	h.mu.Lock()
	g := h.logs[id][role]
	h.mu.Unlock()
	if g != nil {
		return g, nil
	}
	j, err := h.journals.Open(id, role)
	if err != nil {
		return nil, err
	}
	g = newLog(id, j, ring{max: h.options.Memory, all: &h.rings})
	h.mu.Lock()
	defer h.mu.Unlock()
	if other := h.logs[id][role]; other != nil { // another goroutine was faster
		return other, nil
	}
	if h.logs[id] == nil {
		h.logs[id] = map[string]*log{}
	}
	h.logs[id][role] = g
	for l := range h.listeners[""] {
		l.join(g.attach(l))
	}
	return g, nil
}

// Begin prepares a console for its writer, and returns where its journal ended.
// Container is the engine's id of the container that is read from now on; it is
// kept beside the journal. A console has one writer: Begin, Append and End of the
// same console are not called at the same time.
func (h *Hub) Begin(id, role, container string) (v1.Resume, error) {
	g, err := h.console(id, role)
	if err != nil {
		return v1.Resume{}, err
	}
	resume, err := g.journal.Begin(container)
	if err != nil { // the checkpoint is a hint: a full disk must not stop the console
		h.log.Warn("cannot save the checkpoint of a console", "container", id, "err", err)
	}
	return resume, nil
}

// Append adds lines to a console: to its journal, and then for its listeners. It
// keeps none of their bytes. After an error the listeners have the lines, but the
// journal has not.
func (h *Hub) Append(id, role string, lines []v1.Line) error {
	if len(lines) == 0 {
		return nil
	}
	g, err := h.console(id, role)
	if err != nil {
		return err
	}
	return g.append(lines)
}

// End closes a console's file. Complete means that the journal has everything that
// its container printed.
func (h *Hub) End(id, role string, complete bool) error {
	g, err := h.console(id, role)
	if err != nil {
		return err
	}
	return g.finish(complete)
}

// Since calls each with the records of a console in their order, until each
// returns false: with the first that is not older than since, and all behind it. A
// few of these may be older, as Docker's are. Data is valid during the call only.
func (h *Hub) Since(ctx context.Context, id, role string, since time.Time, each func(v1.Line) bool) error {
	g, err := h.console(id, role)
	if err != nil {
		return err
	}
	return g.journal.Since(ctx, since, each)
}

// Remove removes a container's consoles and ends its listeners with ErrGone.
// It is called after their writers have ended.
func (h *Hub) Remove(id string) error {
	h.mu.Lock()
	logs := h.logs[id]
	delete(h.logs, id)
	for l := range h.listeners[id] {
		l.end(ErrGone)
	}
	h.mu.Unlock()
	var errs []error
	for _, g := range logs {
		errs = append(errs, g.finish(false))
		g.release()
	}
	return errors.Join(append(errs, h.journals.Remove(id))...)
}
