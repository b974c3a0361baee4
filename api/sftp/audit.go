package sftp

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pkg/sftp"

	v1 "berth/api/v1"
	"berth/store"
)

// describe describes an entry of the session in the audit log. path is that of a file; empty:
// the volume.
func (s *session) describe(action, path string) v1.Audit {
	return v1.Audit{Action: action, Object: s.volume, Path: maskTokens(path), RequestID: s.id, Container: s.container, Volume: s.volume}
}

// change makes a change and records it, see auditor, before it is acknowledged. frees reports whether
// it frees disk space: then it is recorded on a full disk too.
func (s *session) change(action string, frees bool, do func() error, paths ...string) error {
	name := strings.Join(paths, " -> ")
	if err := s.mayChange(); err != nil {
		return err
	}
	if err := do(); err != nil {
		return s.statusOf(name, err)
	}
	_, err := s.record(action, name, frees)
	return s.statusOf(name, err)
}

// mayChange refuses changes in a read-only session. It waits if the tenant has made too
// many.
func (s *session) mayChange() error {
	if s.readOnly {
		return sftp.ErrSSHFxPermissionDenied
	}
	if s.server.changes.Wait(s.ctx, s.tenant) != nil {
		return sftp.ErrSSHFxConnectionLost
	}
	return nil
}

// record records a change that was made.
func (s *session) record(action, path string, frees bool) (*entry, error) {
	e := &entry{actor: s.actor, audit: s.describe(action, path)}
	return e, s.server.audit.add(e, http.StatusOK, frees)
}

// fileEntry is the entry of an open file. The writes of one handle are one entry.
type fileEntry struct {
	once   sync.Once
	entry  *entry // nil until begin
	failed error  // of its first record
}

// begin records the first change, once.
func (e *fileEntry) begin(s *session, path string) error {
	e.once.Do(func() { e.entry, e.failed = s.record("file.write", path, false) })
	return e.failed
}

// complete stores refused, the last refusal of a write, in the entry. It may be nil.
func (e *fileEntry) complete(s *session, refused error) error {
	if e.entry == nil || refused == nil {
		return nil
	}
	return s.server.audit.add(e.entry, statusOfWrite(refused), true)
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

const (
	recordDelay = 100 * time.Millisecond
	maxWaiting  = 10_000 // entries
	atOnce      = 128    // entries of one update: so many of the largest ones fit into a commit
)

// auditor stores the entries of changes in the audit log. They wait in memory for recordDelay, and
// all that wait are stored together: the content of a changed file is not on the disk when the
// change is answered either, and an update for each would be most of the time of an upload. So
// a kill of berth may lose them.
type auditor struct {
	store *store.Store
	log   *slog.Logger

	storing sync.Mutex // held by flush

	mu      sync.Mutex
	waiting []*entry
	planned *time.Timer // calls flush, unless nothing waits
	closed  bool        // nothing is planned any more
}

// entry is an entry of the audit log.
type entry struct {
	actor v1.Actor
	audit v1.Audit

	// The auditor's, guarded by its mu:
	status  int
	waiting bool
	stored  store.AuditRecord // Seq 0: it was not stored yet
}

// add has an entry stored with a status, or the status of one changed that was added before. It
// returns why that is not possible now. frees reports whether the change frees disk space: then it
// is recorded on a full disk too.
func (a *auditor) add(e *entry, status int, frees bool) error {
	if err := a.store.Writable(); err != nil && (!frees || !errors.Is(err, store.ErrDiskFull)) {
		return err
	}
	a.mu.Lock()
	closed := a.closed
	err := a.wait(e, status)
	a.mu.Unlock()
	if err == nil && closed { // a session that did not end in time
		return a.flush()
	}
	return err
}

// wait appends an entry to those that wait. The caller holds mu.
func (a *auditor) wait(e *entry, status int) error {
	if len(a.waiting) >= maxWaiting {
		return fmt.Errorf("%w: %d entries of the audit log wait", store.ErrFailed, maxWaiting)
	}
	e.status = status
	if !e.waiting {
		e.waiting, a.waiting = true, append(a.waiting, e)
	}
	a.plan()
	return nil
}

// plan plans a flush. The caller holds mu.
func (a *auditor) plan() {
	if a.planned != nil || a.closed {
		return
	}
	a.planned = time.AfterFunc(recordDelay, func() {
		if err := a.flush(); err != nil {
			a.log.Error("sftp: changes could not be recorded yet", slog.Any("err", err))
		}
	})
}

// flush stores the entries that wait. If one cannot be stored, it and the rest wait on.
func (a *auditor) flush() (err error) {
	a.storing.Lock()
	defer a.storing.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	for n := len(a.waiting); n > 0 && err == nil; n -= atOnce {
		err = a.storeFirst(min(n, atOnce))
	}
	a.planned = nil
	if len(a.waiting) > 0 {
		a.plan()
	}
	return err
}

// storeFirst stores the first n entries by one update, on a full disk too: their changes were
// answered. It releases mu meanwhile.
func (a *auditor) storeFirst(n int) error {
	first := slices.Clone(a.waiting[:n])
	next, statuses := make([]store.AuditRecord, n), make([]int, n)
	for i, e := range first {
		next[i], statuses[i] = e.stored, e.status
	}
	a.mu.Unlock()
	err := a.store.MustUpdate(func(tx *store.Tx) (err error) {
		for i, e := range first {
			if next[i].Seq == 0 {
				next[i], err = store.AppendAudit(tx, e.actor, e.audit, statuses[i])
			} else {
				next[i], err = store.SetAuditStatus(tx, next[i], statuses[i])
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	a.mu.Lock()
	if err != nil {
		return err
	}
	a.waiting = a.waiting[n:]
	for i, e := range first {
		e.stored, e.waiting = next[i], false
		if e.status != statuses[i] { // changed meanwhile
			e.waiting, a.waiting = true, append(a.waiting, e)
		}
	}
	return nil
}

// close stores the entries that wait. Later ones are stored when they are added.
func (a *auditor) close() error {
	a.mu.Lock()
	a.closed = true
	if a.planned != nil {
		a.planned.Stop()
	}
	a.mu.Unlock()
	return a.flush()
}
