package stream

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"berth/store/journal"
)

// Hub has all consoles and all listeners. Its methods are for any goroutine.
type Hub struct {
	journals journal.Directory
	options  Options
	log      *slog.Logger
	dropped  prometheus.Counter
	events   *prometheus.CounterVec // transitions
	blocks   sync.Pool              // see batch
	rings    atomic.Int64           // bytes in all rings

	histories chan struct{} // a semaphore: one entry for each History that is open
	readers   chan struct{} // a semaphore: one entry for each that is reading a journal

	mu        sync.Mutex                        // locked before those of logs and listeners; never held over the disk
	logs      map[string]*consoles              // by internal_id
	listeners map[string]map[*Listener]struct{} // by internal_id; the empty one is node-wide
	count     int
	changed   chan struct{} // closed when a listener begins or ends
	closed    bool
}

// New returns a hub that keeps its journals in <dir>/<internal_id>/.
func New(dir string, o Options) *Hub {
	o = o.withDefaults()
	h := &Hub{
		journals: journal.Directory{Path: dir, FileSize: o.FileSize, Files: o.Files},
		options:  o,
		log:      o.Log,
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "berth_console_lines_dropped_total",
			Help: "Console lines that a listener was too slow for.",
		}),
		events:    newEventCounter(),
		logs:      map[string]*consoles{},
		listeners: map[string]map[*Listener]struct{}{},
		changed:   make(chan struct{}),
		histories: make(chan struct{}, histories),
		readers:   make(chan struct{}, diskReaders),
	}
	h.blocks.New = func() any { b := make([]byte, journal.BlockSize); return &b }
	if o.Registerer != nil {
		o.Registerer.MustRegister(h.dropped, h.events)
	}
	return h
}

// Listen begins to listen to a container, or with an empty id to all of them. Next
// returns no earlier state events and lines. The error is ErrFull, ErrClosed, or that
// of a journal that cannot be read.
func (h *Hub) Listen(id string) (*Listener, error) {
	var own *consoles
	if id != "" {
		var err error
		if own, err = h.consoles(id); err != nil {
			return nil, err
		}
	}
	l := &Listener{hub: h, id: id, stats: map[string]*queued{}, signal: make(chan struct{}, 1)}
	l.batch = batch{nodeWide: id == "", now: h.options.Now, blocks: &h.blocks, lost: func(n int64) { h.dropped.Add(float64(n)) }}
	return l, register(h, l, own)
}

// ListenFrom begins to listen to a container for a client that has read up to since:
// Next returns the lines behind it first. Missing is the text of a message about lines
// that it cannot return; it is empty if there are none. ListenFrom waits for a permit to
// read the journals; if ctx ends first, its error is ErrBusy.
func (h *Hub) ListenFrom(ctx context.Context, id string, since LineCursor) (l *Listener, missing string, err error) {
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

func register(h *Hub, l *Listener, own *consoles) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return ErrClosed
	case h.count >= h.options.Listeners, len(h.listeners[l.id]) >= h.options.PerContainer:
		return ErrFull
	}
	if h.listeners[l.id] == nil {
		h.listeners[l.id] = map[*Listener]struct{}{}
	}
	h.listeners[l.id][l] = struct{}{}
	h.count++
	if own != nil {
		own.attach(l)
	} else {
		for _, c := range h.logs {
			c.attach(l)
		}
	}
	notifyChanged(h)
	return nil
}

// remove removes a listener. It may be called again.
func remove(h *Hub, l *Listener) {
	h.mu.Lock()
	if _, there := h.listeners[l.id][l]; there {
		delete(h.listeners[l.id], l)
		if len(h.listeners[l.id]) == 0 {
			delete(h.listeners, l.id)
		}
		h.count--
		notifyChanged(h)
	}
	h.mu.Unlock()
	for _, c := range l.leave() {
		c.log.detach(c)
	}
}

func notifyChanged(h *Hub) {
	close(h.changed)
	h.changed = make(chan struct{})
}

// Watched returns the ids of the containers that have listeners, and whether there is
// a node-wide one. Changed is closed when that may have changed.
func (h *Hub) Watched() (ids []string, all bool, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.listeners {
		if id != "" {
			ids = append(ids, id)
		}
	}
	return ids, len(h.listeners[""]) > 0, h.changed
}

// Listeners returns the number of listeners.
func (h *Hub) Listeners() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

// Close ends every listener with ErrClosed, and accepts no more.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	endAll(h.listeners, ErrClosed)
}

// Missed ends every listener with ErrSlow, because transitions were stored and not
// published: its client resumes from the stored ones.
func (h *Hub) Missed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	endAll(h.listeners, ErrSlow)
}

func endAll(listeners map[string]map[*Listener]struct{}, err error) {
	for _, set := range listeners {
		for l := range set {
			l.end(err)
		}
	}
}

// listenersOf returns the listeners of containers and the node-wide ones.
func listenersOf(h *Hub, ids ...string) []*Listener {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []*Listener
	for _, id := range ids {
		if id == "" {
			continue
		}
		for l := range h.listeners[id] {
			list = append(list, l)
		}
	}
	for l := range h.listeners[""] {
		list = append(list, l)
	}
	return list
}
