package sftp

import (
	"net/http"
	"strings"
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
	return store.NewRequest(s.server.deps.Store, s.actor, v1.Audit{Action: action, Object: s.volume, Path: maskTokens(path),
		RequestID: s.id, Container: s.container, Volume: s.volume})
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

// begin stores the entry of a file whose handle stays open, so that no kill loses it. The
// handle's Close waits until it is on the disk, which takes as long as writing to the file.
func (s *session) begin(entry *store.Request) error {
	s.server.pace.Count(s.principal, false)
	return entry.Begin(http.StatusOK)
}
