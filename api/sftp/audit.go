package sftp

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pkg/sftp"

	v1 "berth/api/v1"
	"berth/store"
)

// changeBurst is how far the changes of a token may be ahead of one in 10 ms: 20,000 of
// them. A tree that is uploaded has more files than a panel sends requests.
const changeBurst = 200 * time.Second

// newEntry returns the request that stores an entry of the session in the audit log. path
// is that of a file; empty: the volume.
func (s *session) newEntry(action, path string) *store.Request {
	r := store.NewRequest(s.server.deps.Store, s.actor, v1.Audit{Action: action, Object: s.volume, Path: maskTokens(path),
		RequestID: s.id, Container: s.container, Volume: s.volume})
	r.FlushLater = true // as the change itself, see ADR 0161
	return r
}

// change makes a change and records it, before it is acknowledged. frees reports whether
// it frees disk space: then it is recorded on a full disk too.
func (s *session) change(action string, frees bool, do func() error, paths ...string) error {
	name := strings.Join(paths, " -> ")
	if err := s.mayChange(); err != nil {
		return err
	}
	if err := do(); err != nil {
		return s.statusOf(name, err)
	}
	return s.statusOf(name, s.record(s.newEntry(action, name), frees))
}

// mayChange refuses changes in a read-only session. It waits if the token has made too
// many.
func (s *session) mayChange() error {
	if s.readOnly {
		return sftp.ErrSSHFxPermissionDenied
	}
	if s.server.pace.Wait(s.ctx, s.principal) != nil {
		return sftp.ErrSSHFxConnectionLost
	}
	return nil
}

// record stores the entry of a change that was made.
func (s *session) record(entry *store.Request, frees bool) error {
	s.server.pace.Count(s.principal, false)
	return entry.Finish(http.StatusOK, nil, frees)
}

// fileEntry is the entry of an open file. The writes of one handle are one entry.
type fileEntry struct {
	once    sync.Once
	request *store.Request // nil until begin
	failed  error          // of its first record
}

// begin stores the entry, once.
func (e *fileEntry) begin(s *session, path string) error {
	e.once.Do(func() {
		e.request = s.newEntry("file.write", path)
		e.failed = s.record(e.request, false)
	})
	return e.failed
}

// complete stores refused, the last refusal of a write, in the entry. It may be nil.
func (e *fileEntry) complete(refused error) error {
	if e.request == nil || refused == nil {
		return nil
	}
	return e.request.Finish(statusOfWrite(refused), nil, true)
}

// statusOfWrite returns the status of an entry whose last writes were refused.
func statusOfWrite(err error) int {
	switch {
	case errors.Is(err, v1.ErrSizeLimit):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, v1.ErrDiskFull):
		return http.StatusInsufficientStorage
	case errors.Is(err, &v1.Error{Code: v1.VolumeRestoring}):
		return http.StatusConflict
	}
	return http.StatusInternalServerError
}
