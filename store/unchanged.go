package store

import "sync"

// maxLatest is the maximum number of objects whose last change is kept.
const maxLatest = 50_000

// latest keeps the revision of the last change of each object that has changed since the
// store was opened.
type latest struct {
	mu    sync.RWMutex
	since uint64 // changes up to this revision are not kept
	of    map[objectRef]uint64
}

// objectRef names an object.
type objectRef struct{ kind, id string }

// record adds published changes, the newest last.
func (l *latest) record(changes []Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range changes {
		if l.of == nil || len(l.of) >= maxLatest {
			l.since, l.of = c.Revision, map[objectRef]uint64{}
		}
		l.of[objectRef{c.Kind, c.ID}] = c.Revision
	}
}

// Unchanged reports whether an object has not changed since a revision, which the store
// must have published; see Store.Revision. A restore changes its volume when it begins
// and when it ends. It reads nothing from the disk. False may also mean that it is unknown.
func Unchanged[S cloner[S], T cloner[T]](c Collection[S, T], s *Store, id string, since uint64) bool {
	s.latest.mu.RLock()
	defer s.latest.mu.RUnlock()
	return since >= s.latest.since && s.latest.of[objectRef{c.kind(), id}] <= since
}
