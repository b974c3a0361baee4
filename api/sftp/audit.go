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
	return v1.Audit{Action: action, Object: s.volume, Path: v1.MaskTokens(v1.EscapePath(path)), RequestID: s.id,
		Container: s.container, Volume: s.volume, Tenant: s.tenant}
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
	if s.server.limits.changes.Wait(s.ctx, s.tenant, s.valid) != nil {
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
	store   *store.Store
	log     *slog.Logger
	storing sync.Mutex // held by flush

	mu      sync.Mutex
	waiting []change // in their order; a timer calls flush unless there is none
}

// entry is an entry of the audit log.
type entry struct {
	actor  v1.Actor
	audit  v1.Audit
	stored store.AuditRecord // Seq 0: it was not stored yet; the auditor's
}

// change is an entry to store, or the new status of one that was added before.
type change struct {
	entry  *entry
	status int
}

// add has an entry stored with a status, or the status of one changed that was added before. It
// returns why that is not possible now. frees reports whether the change frees disk space: then it
// is recorded on a full disk too.
func (a *auditor) add(e *entry, status int, frees bool) error {
	if err := a.store.Writable(); err != nil && (!frees || !errors.Is(err, store.ErrDiskFull)) {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) >= maxWaiting {
		return fmt.Errorf("%w: %d entries of the audit log wait", store.ErrFailed, maxWaiting)
	}
	if a.waiting = append(a.waiting, change{e, status}); len(a.waiting) == 1 {
		time.AfterFunc(recordDelay, a.flushOrRetry)
	}
	return nil
}

func (a *auditor) flushOrRetry() {
	err := a.flush()
	if err == nil || errors.Is(err, store.ErrClosed) {
		return
	}
	a.log.Error("sftp: changes could not be recorded yet", slog.Any("err", err))
	time.AfterFunc(recordDelay, a.flushOrRetry)
}

// flush stores the entries that wait. If one cannot be stored, it and the rest wait on.
func (a *auditor) flush() error {
	a.storing.Lock()
	defer a.storing.Unlock()
	for {
		a.mu.Lock()
		first := slices.Clone(a.waiting[:min(len(a.waiting), atOnce)])
		a.mu.Unlock()
		if len(first) == 0 {
			return nil
		}
		if err := a.put(first); err != nil {
			return err
		}
		a.mu.Lock()
		a.waiting = a.waiting[len(first):]
		a.mu.Unlock()
	}
}

// put stores entries by one update, on a full disk too: their changes were answered.
func (a *auditor) put(list []change) error {
	var stored map[*entry]store.AuditRecord
	err := a.store.MustUpdate(func(tx *store.Tx) (err error) {
		stored = map[*entry]store.AuditRecord{}
		for _, c := range list {
			r, again := stored[c.entry]
			if !again {
				r = c.entry.stored
			}
			if r.Seq == 0 {
				r, err = store.AppendAudit(tx, c.entry.actor, c.entry.audit, c.status)
			} else {
				r, err = store.SetAuditStatus(tx, r, c.status)
			}
			if err != nil {
				return err
			}
			stored[c.entry] = r
		}
		return nil
	})
	if err != nil {
		return err
	}
	for e, r := range stored {
		e.stored = r
	}
	return nil
}
