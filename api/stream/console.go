package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "berth/api/v1"
)

// consoles are the consoles of a container.
type consoles struct {
	install, server *log
	downloads       chan struct{} // a semaphore: one entry for each History of all lines that is open
}

// both returns the consoles in the order of roles.
func (c *consoles) both() []*log { return []*log{c.install, c.server} }

// attach adds cursors at the end of both consoles to a listener.
func (c *consoles) attach(l *Listener) {
	install, server := c.install.attach(l), c.server.attach(l)
	install.other, server.other = server, install
	l.join(install, server)
}

// consoles returns the consoles of a container, and opens their journals at the first
// call.
func (h *Hub) consoles(id string) (*consoles, error) {
	h.mu.Lock()
	known := h.logs[id]
	h.mu.Unlock()
	if known != nil {
		return known, nil
	}
	install, err := h.journals.Open(id, v1.InstallConsole)
	if err != nil {
		return nil, err
	}
	server, err := h.journals.Open(id, v1.ServerConsole)
	if err != nil {
		return nil, err
	}
	times := &clock{last: time.Unix(0, max(install.Last(), server.Last()))}
	readers := newTurn()
	fresh := &consoles{
		downloads: make(chan struct{}, downloads),
		install:   newLog(id, v1.InstallConsole, install, times, readers, newRing(h)),
		server:    newLog(id, v1.ServerConsole, server, times, readers, newRing(h)),
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if other := h.logs[id]; other != nil { // another goroutine was faster
		return other, nil
	}
	h.logs[id] = fresh
	for l := range h.listeners[""] {
		fresh.attach(l)
	}
	return fresh, nil
}

func newRing(h *Hub) ring { return ring{max: h.options.Memory, all: &h.rings} }

// console returns a console of a container.
func (h *Hub) console(id, role string) (*log, error) {
	c, err := h.consoles(id)
	switch {
	case err != nil:
		return nil, err
	case role == v1.InstallConsole:
		return c.install, nil
	case role == v1.ServerConsole:
		return c.server, nil
	}
	return nil, fmt.Errorf("console of container %s: no role %q", id, role)
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

// LastLines returns the last n records of a console that are not older than since, the
// oldest first, without berth's own messages.
func (h *Hub) LastLines(ctx context.Context, id, role string, n int, since time.Time) (lines []v1.Line, err error) {
	g, err := h.console(id, role)
	if err != nil {
		return nil, err
	}
	done, err := readDisk(ctx, h, nil)
	if err != nil {
		return nil, err
	}
	defer done()
	for r, err := range g.journal.Backward(g.position().off) {
		if err != nil {
			return nil, err
		}
		if len(lines) == n || r.Line.Time.Before(since) {
			break
		}
		if !r.Line.Message {
			r.Line.Data = bytes.Clone(r.Line.Data)
			lines = append(lines, r.Line)
		}
	}
	slices.Reverse(lines)
	return lines, nil
}

// Remove removes a container's consoles and ends its listeners with ErrGone.
// It is called after their writers have ended.
func (h *Hub) Remove(id string) error {
	h.mu.Lock()
	known := h.logs[id]
	delete(h.logs, id)
	for l := range h.listeners[id] {
		l.end(ErrGone)
	}
	h.mu.Unlock()
	var errs []error
	if known != nil {
		for _, g := range known.both() {
			errs = append(errs, g.finish(false))
			g.release()
		}
	}
	return errors.Join(append(errs, h.journals.Remove(id))...)
}
