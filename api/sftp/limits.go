package sftp

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

// Limits on the open files and folders of clients.
const (
	maxHandles      = 100  // of one session
	maxHandlesInAll = 1024 // of all sessions, or an eighth of RLIMIT_NOFILE if that is less
)

// sessionCounts counts the sessions.
type sessionCounts struct {
	mu    sync.Mutex
	all   int
	roots map[string]int // by the first minted token in the line of parents
}

func newSessionCounts() sessionCounts { return sessionCounts{roots: map[string]int{}} }

// enter counts a session, and returns the function that ends it. It returns false if
// there are too many. The configured token serves many users and counts only in all.
func (l *sessionCounts) enter(root string, c v1.SFTPConfig) (leave func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= c.MaxSessions || root != v1.Administrator && l.roots[root] >= c.MaxSessionsPerToken {
		return nil, false
	}
	l.change(root, 1)
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.change(root, -1)
	}), true
}

func (l *sessionCounts) change(root string, by int) {
	l.all += by
	if l.roots[root] += by; l.roots[root] == 0 {
		delete(l.roots, root)
	}
}

// handles counts open files and folders.
type handles struct {
	mu   sync.Mutex
	open int
	most int
}

func newHandles(most int) *handles { return &handles{most: most} }

// totalHandles returns the limit for all sessions.
func totalHandles() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return maxHandles
	}
	return int(min(maxHandlesInAll, limit.Cur/8))
}

// enter counts a handle, or returns false if there are too many.
func (h *handles) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open >= h.most {
		return false
	}
	h.open++
	return true
}

func (h *handles) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open--
}

// openHandle counts a handle for the session and in all, and returns the function that
// ends it.
func (s *session) openHandle() (leave func(), err error) {
	if !s.handles.enter() {
		return nil, errHandles
	}
	if !s.server.handles.enter() {
		s.handles.leave()
		return nil, errors.New("the host has too many open files: try again later")
	}
	return sync.OnceFunc(func() {
		s.server.handles.leave()
		s.handles.leave()
	}), nil
}
