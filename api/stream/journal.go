package stream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	v1 "berth/api/v1"
)

var roles = []string{v1.InstallConsole, v1.ServerConsole}

// checkName keeps ids that are no directory's name away from the disk.
func checkName(id, role string) error {
	if id == "" || id == "." || filepath.Base(id) != id || !filepath.IsLocal(id) {
		return fmt.Errorf("console of container %q: no such name", id)
	}
	if role != v1.InstallConsole && role != v1.ServerConsole {
		return fmt.Errorf("console of container %s: no role %q", id, role)
	}
	return nil
}

func (h *Hub) path(id string) string { return filepath.Join(h.dir, id) }

// Begin makes a console ready to be written, and says where its journal ended.
// Container is the engine's id of what is read from now on; it is kept beside
// the journal. A console has one writer: Begin, Append and End of the same
// console are not called at the same time.
func (h *Hub) Begin(id, role, container string) (v1.Resume, error) {
	g, err := h.console(id, role)
	if err != nil {
		return v1.Resume{}, err
	}
	resume, err := g.begin(container)
	if err != nil { // a note is a hint: a full disk must not stop the console
		h.log.Warn("console has no note of its container", "container", id, "err", err)
	}
	return resume, nil
}

// Append adds lines to a console, in the journal and for who listens; the first
// before the second. It keeps none of their bytes. After an error the lines
// were handed to listeners, but are not in the journal.
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

// End lets go of a console's file. Whole says that all that its container
// printed is in the journal.
func (h *Hub) End(id, role string, whole bool) error {
	g, err := h.console(id, role)
	if err != nil {
		return err
	}
	return g.finish(whole)
}

// Since hands out the records of a console in their order, until each is false:
// the first that is not older than since, and all behind it; a few of these may
// be older, as Docker's are. Data is valid during the call only.
func (h *Hub) Since(ctx context.Context, id, role string, since time.Time, each func(v1.Line) bool) error {
	g, err := h.console(id, role)
	if err != nil {
		return err
	}
	return g.since(ctx, since, each)
}

// Tail returns the last n lines (10,000 and 4 MiB at most) of a console that are
// not older than since, oldest first. An empty role means both consoles, in the
// order of time.
func (h *Hub) Tail(id, role string, n int, since time.Time) ([]v1.Line, error) {
	if role == "" {
		return tailBoth(h, id, n, since)
	}
	g, err := h.console(id, role)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	end := g.end.off
	g.mu.Unlock()
	return g.tail(n, since, end)
}

func tailBoth(h *Hub, id string, n int, since time.Time) ([]v1.Line, error) {
	var all []v1.Line
	for _, role := range roles {
		lines, err := h.Tail(id, role, n, since)
		if err != nil {
			return nil, err
		}
		all = merge(all, lines)
	}
	return all[max(0, len(all)-n):], nil
}

// Remove removes a container's consoles and ends its listeners with ErrGone.
// Nobody may write to them any more.
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
	if err := checkName(id, v1.ServerConsole); err != nil {
		return err
	}
	return errors.Join(append(errs, os.RemoveAll(h.path(id)))...)
}
