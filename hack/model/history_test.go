package model_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"berth/hack/test/berthtest"
)

// transition is a stored event of GET /events.
type transition struct {
	Seq                    uint64
	Epoch                  string
	Time                   string
	Container, UID         string
	Event, Data, From      string
	Reason                 string
	Backup, Restore, Actor any
}

type page struct {
	Events []transition
	Epoch  string
	Oldest uint64
	Newest uint64
}

// history follows the transitions with a cursor, as a panel does.
type history struct {
	*world
	epoch string

	mu     sync.Mutex
	newest uint64
	all    []string         // as text, by seq - 1
	games  map[string]*life // by uid
}

// life is one creation of a container, as its transitions tell it.
type life struct {
	id, state string
	counts    map[string]int
}

// next are the states that may follow a state.
var next = map[string]string{
	"":           "installing deleting",
	"installing": "ready failed deleting",
	"ready":      "installing starting deleting",
	"starting":   "running stopping exit deleting",
	"running":    "stopping exit deleting",
	"stopping":   "exit deleting",
	"exit":       "installing starting deleting",
	"failed":     "installing deleting",
}

// follow reads until the test ends.
func (h *history) follow() {
	for !h.ended.Load() && !h.t.Failed() {
		h.read()
		time.Sleep(20 * time.Millisecond) // the pace of a client that polls
	}
}

// read reads a page after the cursor, and often some transitions before it again.
func (h *history) read() {
	h.mu.Lock()
	defer h.mu.Unlock()
	since := h.newest - min(h.newest, 5)
	p, ok := h.page(since)
	if !ok {
		return
	}
	if h.epoch == "" {
		h.epoch = p.Epoch
	}
	if p.Epoch != h.epoch || p.Newest < h.newest || p.Oldest > 1 {
		h.violated(nil, "transitions %d to %d of epoch %s after %d of %s", p.Oldest, p.Newest, p.Epoch, h.newest, h.epoch)
	}
	for _, e := range p.Events {
		if since++; e.Seq != since {
			h.violated(nil, "transition %d follows %d", e.Seq, since-1)
		}
		h.take(e)
	}
}

func (h *history) page(since uint64) (p page, ok bool) {
	a, err := h.b.Try(h.t.Context(), "GET", fmt.Sprintf("/events?since=%d&epoch=%s&limit=1000", since, h.epoch), nil)
	if err != nil || a.Status != 200 {
		return p, false
	}
	a.Decode(h.t, &p)
	return p, true
}

// take compares a transition that was read before, and adds a new one to the life of its container.
func (h *history) take(e transition) {
	text := fmt.Sprintf("%+v", e)
	if e.Seq <= h.newest {
		if h.all[e.Seq-1] != text {
			h.violated(nil, "transition %d was %s and is %s", e.Seq, h.all[e.Seq-1], text)
		}
		return
	}
	h.newest, h.all = e.Seq, append(h.all, text)
	if e.Event != "event" {
		return
	}
	l := h.games[e.UID]
	if l == nil {
		l = &life{id: e.Container, counts: map[string]int{}}
		h.games[e.UID] = l
	}
	if e.From != l.state || e.Container != l.id || !slices.Contains(strings.Fields(next[l.state]), e.Data) {
		h.violated(nil, "container %s (%s) was %q, and then: %s", l.id, e.UID, l.state, text)
	}
	l.state = e.Data
	l.counts[e.Data]++
}

// check reads to the newest transition, and compares the games with their transitions.
func (h *history) check() {
	h.catchUp()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.clients {
		for _, g := range c.games {
			if g.possible[0].exists {
				h.compare(g)
			}
		}
	}
}

func (h *history) catchUp() {
	var newest struct{ Newest uint64 }
	h.b.Get(h.t, "/events?limit=0", &newest)
	if !berthtest.Within(wait, func() bool { h.read(); h.mu.Lock(); defer h.mu.Unlock(); return h.newest >= newest.Newest }) {
		h.violated(nil, "transition %d is not read", newest.Newest)
	}
}

// compare requires that each run of a game was announced, and that each `running` and `ready` is that of one. An
// installation that is requested during another one has no transition of its own.
func (h *history) compare(g *game) {
	l := h.games[g.uid]
	if l == nil {
		g.wrong("%s (%s) has no transitions", g.id, g.uid)
		return
	}
	runs, installs := g.runs-g.bornRuns, g.installs-g.bornInstalls
	if !between(runs, l.counts["running"], l.counts["starting"]) || installs < l.counts["ready"] {
		g.wrong("%s ran %d times and was installed %d times; its transitions: %v", g.id, runs, installs, l.counts)
	}
}

// compareAll reads all transitions again, and compares them with those that were read.
func (h *history) compareAll() {
	h.catchUp()
	h.mu.Lock()
	defer h.mu.Unlock()
	for since := uint64(0); since < h.newest; {
		p, ok := h.page(since)
		if !ok || len(p.Events) == 0 {
			h.violated(nil, "no transitions after %d of %d", since, h.newest)
			return
		}
		for _, e := range p.Events {
			if since++; e.Seq != since {
				h.violated(nil, "transition %d follows %d", e.Seq, since-1)
			}
			h.take(e)
		}
	}
}
