package volume

import (
	"slices"
	"sync"
	"time"

	"berth/runtime"
)

const (
	smallConfig = 256 << 10       // bytes of a configuration file and its values that are parsed at once
	placeAhead  = 5 * time.Second // how long a volume that does not ask again lets none pass
	placeKept   = time.Minute     // how long its place stays
)

// configTurns bounds the memory of configuration files that are parsed: of one volume at
// a time if they are large. A small one never waits, so that no container with large files
// delays those with usual ones. Volumes take turns: one that is refused keeps its place in
// the queue and asks again, and a turn lasts for all files of a start. So a start waits for
// one start of each volume before it, however often those start.
type configTurns struct {
	mu     sync.Mutex
	taken  bool
	places []queued // in the order of the first request
}

// queued is the place of a volume in the queue.
type queued struct {
	volume string
	asked  time.Time // last
}

// turn is that of one volume during one start.
type turn struct {
	all    *configTurns
	volume string
	begun  bool
}

// of returns the turn of a volume. The caller calls end at the end.
func (c *configTurns) of(volume string) *turn { return &turn{all: c, volume: volume} }

// begin begins the turn, unless it has begun, for a file of a size. The error is
// runtime.ErrConfigBusy if it is not the volume's turn.
func (t *turn) begin(size int64) error {
	if size <= smallConfig || t.begun {
		return nil
	}
	if !t.all.take(t.volume) {
		return runtime.ErrConfigBusy
	}
	t.begun = true
	return nil
}

// end ends the turn.
func (t *turn) end() {
	if !t.begun {
		return
	}
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	t.all.taken = false
}

// take reports whether it is the turn of a volume, which has it then, or else a place.
func (c *configTurns) take(volume string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.places = slices.DeleteFunc(c.places, func(p queued) bool { return now.Sub(p.asked) > placeKept })
	own := slices.IndexFunc(c.places, func(p queued) bool { return p.volume == volume })
	if own < 0 {
		own = len(c.places)
		c.places = append(c.places, queued{volume: volume})
	}
	c.places[own].asked = now
	ahead := slices.ContainsFunc(c.places[:own], func(p queued) bool { return now.Sub(p.asked) < placeAhead })
	if c.taken || ahead {
		return false
	}
	c.taken = true
	c.places = slices.Delete(c.places, own, own+1)
	return true
}
