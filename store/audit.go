package store

import (
	"encoding/json"
	"errors"
	"time"

	v1 "berth/api/v1"
)

// auditRecord is a stored entry of the audit log, with what the filters need.
type auditRecord struct {
	v1.AuditEntry
	Container string `json:"container,omitempty"`
	Volume    string `json:"volume,omitempty"`
}

// AppendAudit stores an entry with the next seq and the time of the update.
func AppendAudit(tx *Tx, actor v1.Actor, a v1.Audit, status int) (v1.AuditEntry, error) {
	e := v1.AuditEntry{Time: tx.now, Actor: actor, Action: a.Action, Object: v1.AuditObject(a.Name()), RequestID: a.RequestID, Status: status}
	err := auditLog.append(tx, func(seq uint64) any {
		e.Seq = seq
		return auditRecord{e, v1.AuditObject(a.Container), v1.AuditObject(a.Volume)}
	})
	return e, err
}

// SetAuditStatus stores the status of an entry, unless the entry was removed.
func SetAuditStatus(tx *Tx, e v1.AuditEntry, status int) (v1.AuditEntry, error) {
	key := auditLog.key(e.Seq)
	r, err := readAudit(tx, key)
	if errors.Is(err, ErrNotFound) {
		return e, nil
	}
	if err != nil {
		return e, err
	}
	r.Status = status
	return r.AuditEntry, writeAudit(tx, key, r)
}

func readAudit(tx *Tx, key string) (r auditRecord, err error) {
	err = tx.read(key, func(b []byte) error { return json.Unmarshal(b, &r) })
	return r, err
}

func writeAudit(tx *Tx, key string, r auditRecord) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return tx.set(key, b)
}

// ReadAudit returns up to limit entries of the audit log after seq since that f
// selects, oldest first. Entries that retention has removed are left out.
func ReadAudit(tx *Tx, since uint64, limit int, f v1.AuditFilter) ([]v1.AuditEntry, error) {
	list := []v1.AuditEntry{}
	oldest, newest, err := auditLog.bounds(tx)
	since = max(since, oldest-1)
	if err != nil || limit <= 0 || since >= newest {
		return list, err
	}
	for entry := range tx.scan(auditLog.prefix(), auditLog.key(since+1)) {
		var r auditRecord
		if err := entry.read(func(b []byte) error { return json.Unmarshal(b, &r) }); err != nil {
			tx.store.log.Error("cannot read an entry of the audit log", "seq", auditLog.seq(entry.key), "err", err)
			continue
		}
		if !selects(f, r) {
			continue
		}
		if list = append(list, r.AuditEntry); len(list) == limit {
			break
		}
	}
	return list, tx.err
}

func selects(f v1.AuditFilter, r auditRecord) bool {
	return (f.Container == "" || f.Container == r.Container) && (f.Volume == "" || f.Volume == r.Volume) && f.Matches(r.Actor)
}

// TrimAudit removes the entries that are older than before, and all but the newest
// keep, like TrimEvents.
func (s *Store) TrimAudit(before time.Time, keep int) (removed int, err error) {
	return auditLog.trim(s, before, keep)
}
