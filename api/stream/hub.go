package stream

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	v1 "berth/api/v1"
	"berth/store/journal"
)

// Errors of Listener.Take and Hub.Listen.
var (
	ErrSlow   = errors.New("listener is too slow for its state events") // the client can resume by sequence number
	ErrGone   = errors.New("container is deleted")
	ErrClosed = errors.New("hub is closed")
)

// Cursor is how far a client has read the console of a container.
type Cursor = journal.Cursor

// ParseCursor parses the text of a Cursor.
func ParseCursor(text string) (Cursor, bool) { return journal.ParseCursor(text) }

// Options change how a Hub works. The zero value works.
type Options struct {
	FileSize   int64 // bytes of a journal file; 0: 20 MiB
	Files      int   // files kept of an installer or a server, including the one being written; 0: 2
	Registerer prometheus.Registerer
	Log        *slog.Logger
	Now        func() time.Time
}

// Hub has all consoles and all listeners. Its methods are for any goroutine.
type Hub struct {
	journals journal.Directory
	options  Options
	log      *slog.Logger
	dropped  prometheus.Counter
	events   *prometheus.CounterVec // transitions

	mu        sync.Mutex                        // locked before those of listeners; never held over the disk
	consoles  map[string]*console               // by internal_id
	listeners map[string]map[*Listener]struct{} // by internal_id; the empty one is node-wide
	changed   chan struct{}                     // closed when a listener begins or ends
	closed    bool
}

// console is the console of a container.
type console struct {
	id        string
	journal   *journal.Journal
	reading   chan struct{} // a permit to read lines: together, the readers of a container use one processor
	nodeWide  chan struct{} // the same for node-wide listeners, which wait for no reader of the container
	downloads chan struct{} // permits of downloads of all lines
}

// New returns a hub that keeps its journals in <dir>/<internal_id>/.
func New(dir string, o Options) *Hub {
	setDefault(&o.FileSize, 20<<20)
	setDefault(&o.Files, 2)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	h := &Hub{
		journals: journal.Directory{Path: dir, FileSize: o.FileSize, Files: o.Files},
		options:  o,
		log:      o.Log,
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "berth_console_lines_dropped_total",
			Help: "Console lines that a listener was too slow for.",
		}),
		events:    newEventCounter(),
		consoles:  map[string]*console{},
		listeners: map[string]map[*Listener]struct{}{},
		changed:   make(chan struct{}),
	}
	if o.Registerer != nil {
		o.Registerer.MustRegister(h.dropped, h.events)
	}
	return h
}

func setDefault[T int | int64](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}

// console returns the console of a container, and opens its journal at the first call.
func (h *Hub) console(id string) (*console, error) {
	h.mu.Lock()
	known := h.consoles[id]
	h.mu.Unlock()
	if known != nil {
		return known, nil
	}
	j, err := h.journals.Open(id)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if other := h.consoles[id]; other != nil { // another goroutine was faster
		return other, nil
	}
	c := &console{id: id, journal: j, reading: make(chan struct{}, 1), nodeWide: make(chan struct{}, 1),
		downloads: make(chan struct{}, downloads)}
	h.consoles[id] = c
	return c, nil
}

// Begin prepares a console for the writer of a role, and returns where its journal ended. Container is
// the engine's id of the container that is read from now on; it is kept beside the journal. A role has
// one writer: Begin, Append and Finish are not called at the same time for it.
func (h *Hub) Begin(id, role, container string) (v1.Resume, error) {
	c, err := h.console(id)
	if err != nil {
		return v1.Resume{}, err
	}
	resume, err := c.journal.Begin(role, container)
	if err != nil { // the checkpoint is a hint: a full disk must not stop the console
		h.log.Warn("cannot save the checkpoint of a console", "container", id, "err", err)
	}
	return resume, nil
}

// Append adds lines to a console and wakes the listeners. It keeps none of their bytes. After an error
// nothing was added.
func (h *Hub) Append(id, role string, lines []v1.Line) error {
	if len(lines) == 0 {
		return nil
	}
	c, err := h.console(id)
	if err != nil {
		return err
	}
	from, err := c.journal.Append(role, lines)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, of := range []string{id, ""} {
		for l := range h.listeners[of] {
			l.queue(c, from)
		}
	}
	return nil
}

// Release closes a console's file.
func (h *Hub) Release(id string) error {
	c, err := h.console(id)
	if err != nil {
		return err
	}
	return c.journal.Release()
}

// Finish is Release, and records that the journal has everything that the container of the role printed.
func (h *Hub) Finish(id, role string) error {
	c, err := h.console(id)
	if err != nil {
		return err
	}
	return c.journal.Finish(role)
}

// Since calls each with the records of a role in their order, until each returns false: with the first
// that is not older than since, and all behind it. A few of these may be older, as Docker's are.
func (h *Hub) Since(ctx context.Context, id, role string, since time.Time, each func(v1.Line) bool) error {
	c, err := h.console(id)
	if err != nil {
		return err
	}
	return c.journal.Since(ctx, role, since, each)
}

// Current calls each with the records of a role that belong to the container which Begin has named
// last, in their order, until each returns false.
func (h *Hub) Current(ctx context.Context, id, role string, each func(v1.Line) bool) error {
	c, err := h.console(id)
	if err != nil {
		return err
	}
	return c.journal.Current(ctx, role, each)
}

// Remove removes a container's console and ends its listeners with ErrGone. It is called after its
// writers have ended.
func (h *Hub) Remove(id string) error {
	h.mu.Lock()
	known := h.consoles[id]
	delete(h.consoles, id)
	for l := range h.listeners[id] {
		l.end(ErrGone)
	}
	for l := range h.listeners[""] {
		l.forget(known)
	}
	h.mu.Unlock()
	var err error
	if known != nil {
		err = known.journal.Release()
	}
	return errors.Join(err, h.journals.Remove(id))
}

// Listen begins to listen to a container, or with an empty id to all of them. Take returns no earlier
// state events and lines. The error is ErrClosed, or that of a journal that cannot be read. The caller bounds
// the listeners.
func (h *Hub) Listen(id string) (*Listener, error) {
	l := &Listener{hub: h, id: id, readers: map[*console]*reader{}, stats: map[string]v1.Stats{}, signal: make(chan struct{}, 1)}
	var own *console
	if id != "" {
		var err error
		if own, err = h.console(id); err != nil {
			return nil, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	if h.listeners[id] == nil {
		h.listeners[id] = map[*Listener]struct{}{}
	}
	h.listeners[id][l] = struct{}{}
	h.notifyChanged()
	if own != nil {
		l.own = &reader{console: own, Position: own.journal.End()}
		l.readers[own] = l.own
		l.start = l.own.Offset
	}
	return l, nil
}

// ListenFrom begins to listen to a container for a client that has read up to since: Take returns the
// lines behind it first. Missing is the text of a message about lines that it cannot return; it is
// empty if there are none. If ctx ends first, the error is ErrBusy.
func (h *Hub) ListenFrom(ctx context.Context, id string, since Cursor) (l *Listener, missing string, err error) {
	l, err = h.Listen(id)
	if err != nil {
		return nil, "", err
	}
	if missing, err = l.rewind(ctx, since); err != nil {
		l.Close()
		return nil, "", err
	}
	return l, missing, nil
}

// remove removes a listener. It may be called again.
func (h *Hub) remove(l *Listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, there := h.listeners[l.id][l]; !there {
		return
	}
	delete(h.listeners[l.id], l)
	if len(h.listeners[l.id]) == 0 {
		delete(h.listeners, l.id)
	}
	h.notifyChanged()
}

func (h *Hub) notifyChanged() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// Listened returns the ids of the containers that have listeners, and whether there is
// a node-wide one. Changed is closed when that may have changed.
func (h *Hub) Listened() (ids []string, all bool, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.listeners {
		if id != "" {
			ids = append(ids, id)
		}
	}
	return ids, len(h.listeners[""]) > 0, h.changed
}

// Close ends every listener with ErrClosed, and accepts no more.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.endAll(ErrClosed)
}

// Missed ends every listener with ErrSlow, because transitions were stored and not
// published: its client resumes from the stored ones.
func (h *Hub) Missed() { h.endAll(ErrSlow) }

func (h *Hub) endAll(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, set := range h.listeners {
		for l := range set {
			l.end(err)
		}
	}
}

// Event publishes a stored transition to the listeners of its container, or of the containers that use
// its volume, and to the node-wide ones. It never waits. The caller publishes events in the order of
// their sequence numbers.
func (h *Hub) Event(e v1.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ids := append(e.UserIDs(), e.Container, "")
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		for l := range h.listeners[id] {
			l.putEvent(&e)
		}
	}
}

// Stats publishes a sample to the listeners of its container and to the node-wide ones. It never waits.
// A sample that is still queued is replaced by the next one.
func (h *Hub) Stats(id string, s v1.Stats) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, of := range []string{id, ""} {
		for l := range h.listeners[of] {
			l.putStats(id, s)
		}
	}
}

// acquire waits for a permit. If ctx ends first, its error is ErrBusy.
func acquire(ctx context.Context, permits chan struct{}) (release func(), err error) {
	release = func() { <-permits }
	select {
	case permits <- struct{}{}: // even if ctx has ended
		return release, nil
	default:
	}
	select {
	case permits <- struct{}{}:
		return release, nil
	case <-ctx.Done():
		return nil, ErrBusy
	}
}
