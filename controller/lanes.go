package controller

import "sync"

// maxStreak limits how many urgent keys are popped in a row while others wait.
const maxStreak = 8

// lanes is a priority queue of two levels. It implements workqueue.Queue.
// Keys with a client request are urgent: they overtake keys that only a signal or
// a resync named, so that a kill does not wait behind them. After maxStreak urgent
// keys one ordinary key is popped, so that requests cannot starve the others.
type lanes struct {
	mu     sync.Mutex
	urgent map[string]bool // keys with a client request, until they are taken
	lane   map[string]bool // the lane of each queued key: true is first, false is rest
	first  []string        // first and rest may hold stale entries of keys that changed their lane
	rest   []string
	streak int // urgent keys popped since the last ordinary one
}

func newLanes() *lanes { return &lanes{urgent: map[string]bool{}, lane: map[string]bool{}} }

// hurry marks a key as urgent until it is taken.
func (l *lanes) hurry(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.urgent[key] = true
}

// taken reports whether a popped key is urgent, and clears the mark.
func (l *lanes) taken(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.urgent[key]
	delete(l.urgent, key)
	return was
}

// Push implements workqueue.Queue. It queues a key that is not queued.
func (l *lanes) Push(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(key)
}

// Touch implements workqueue.Queue. It is called when a queued key is added again.
func (l *lanes) Touch(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.urgent[key] && !l.lane[key] {
		l.put(key)
	}
}

func (l *lanes) put(key string) {
	l.lane[key] = l.urgent[key]
	if l.urgent[key] {
		l.first = append(l.first, key)
	} else {
		l.rest = append(l.rest, key)
	}
}

// Len implements workqueue.Queue.
func (l *lanes) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lane)
}

// Pop implements workqueue.Queue. It is called only while the queue is not empty.
func (l *lanes) Pop() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first, l.rest = l.valid(l.first, true), l.valid(l.rest, false)
	from := &l.rest
	if len(l.first) > 0 && (l.streak < maxStreak || len(l.rest) == 0) {
		from = &l.first
		l.streak++
	} else {
		l.streak = 0
	}
	key := (*from)[0]
	*from = (*from)[1:]
	delete(l.lane, key)
	return key
}

// valid drops leading entries of list whose keys have left the lane.
func (l *lanes) valid(list []string, first bool) []string {
	for len(list) > 0 {
		lane, queued := l.lane[list[0]]
		if queued && lane == first {
			break
		}
		list = list[1:]
	}
	return list
}
