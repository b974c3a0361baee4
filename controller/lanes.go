package controller

import "sync"

// maxStreak is how many urgent keys are taken in a row while others wait.
const maxStreak = 8

// lanes is the storage of a work queue (workqueue.Queue). Keys of which a client
// has asked something are urgent, and pass those that only signals and resyncs
// have named: a kill does not wait behind them. They are still taken in turn, so
// that clients cannot keep others waiting for ever.
type lanes struct {
	mu     sync.Mutex
	urgent map[string]bool // wanted in the first lane, until they are popped
	lane   map[string]bool // of the keys that are queued: true is the first
	first  []string        // both may hold keys that have changed the lane
	rest   []string
	streak int
}

func newLanes() *lanes { return &lanes{urgent: map[string]bool{}, lane: map[string]bool{}} }

// hurry makes a key urgent until it is taken.
func (l *lanes) hurry(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.urgent[key] = true
}

// taken reports whether a key that was popped is urgent, and ends that.
func (l *lanes) taken(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.urgent[key]
	delete(l.urgent, key)
	return was
}

// Push is of workqueue.Queue: a key that is not queued.
func (l *lanes) Push(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(key)
}

// Touch is of workqueue.Queue: a key that is queued is added again.
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

// Len is of workqueue.Queue.
func (l *lanes) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lane)
}

// Pop is of workqueue.Queue, and is called only while there is a key.
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

// valid drops what a list begins with and is not in its lane any more.
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
