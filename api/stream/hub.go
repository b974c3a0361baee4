package stream

import (
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
	blocks   sync.Pool    // see batch
	rings    atomic.Int64 // bytes in all rings

	histories chan struct{} // a semaphore: one entry for each History that is open
	readers   chan struct{} // a semaphore: one entry for each that is reading a journal

	mu        sync.Mutex // locked before those of logs and listeners; never held over the disk
	logs      map[string]map[string]*log
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
		logs:      map[string]map[string]*log{},
		listeners: map[string]map[*Listener]struct{}{},
		changed:   make(chan struct{}),
		histories: make(chan struct{}, histories),
		readers:   make(chan struct{}, diskReaders),
	}
	h.blocks.New = func() any { b := make([]byte, journal.BlockSize); return &b }
	if o.Registerer != nil {
		o.Registerer.MustRegister(h.dropped)
	}
	return h
}

// Listen begins to listen to a container, or with an empty id to all of them. Next
// returns no earlier state events and lines. The error is ErrFull, ErrClosed, or that
// of a journal that cannot be read.
func (h *Hub) Listen(id string) (*Listener, error) {
	var logs []*log
	if id != "" {
		for _, role := range roles() {
			g, err := h.console(id, role)
			if err != nil {
				return nil, err
			}
			logs = append(logs, g)
		}
	}
	l := &Listener{hub: h, id: id, stats: map[string]*queued{}, signal: make(chan struct{}, 1)}
	l.batch = batch{nodeWide: id == "", now: h.options.Now, blocks: &h.blocks, lost: func(n int64) { h.dropped.Add(float64(n)) }}
	return l, h.register(l, logs)
}

func (h *Hub) register(l *Listener, logs []*log) error {
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
	if l.id == "" {
		for _, consoles := range h.logs {
			for _, g := range consoles {
				logs = append(logs, g)
			}
		}
	}
	for _, g := range logs {
		l.join(g.attach(l))
	}
	h.notifyChanged()
	return nil
}

// remove removes a listener. It may be called again.
func (h *Hub) remove(l *Listener) {
	h.mu.Lock()
	if _, there := h.listeners[l.id][l]; there {
		delete(h.listeners[l.id], l)
		if len(h.listeners[l.id]) == 0 {
			delete(h.listeners, l.id)
		}
		h.count--
		h.notifyChanged()
	}
	h.mu.Unlock()
	for _, c := range l.leave() {
		c.log.detach(c)
	}
}

func (h *Hub) notifyChanged() {
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

// listenersOf returns the listeners of a container and the node-wide ones.
func (h *Hub) listenersOf(id string) []*Listener {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []*Listener
	for l := range h.listeners[id] {
		list = append(list, l)
	}
	for l := range h.listeners[""] {
		list = append(list, l)
	}
	return list
}
