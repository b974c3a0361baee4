package store

import (
	"encoding/json"
	"iter"
	"slices"
	"time"

	v1 "berth/api/v1"
)

// AuditRecord is a stored entry of the audit log, with what filters need.
type AuditRecord struct {
	v1.AuditEntry
	Container string `json:"container,omitempty"`
	Volume    string `json:"volume,omitempty"`
}

// AppendAudit stores an entry with the next seq and the time of the update.
func AppendAudit(tx *Tx, actor v1.Actor, a v1.Audit, status int) (AuditRecord, error) {
	e := v1.AuditEntry{Time: tx.now, Actor: actor, Action: a.Action, Object: v1.AuditObject(a.Name()), RequestID: a.RequestID, Status: status}
	r := AuditRecord{e, v1.AuditObject(a.Container), v1.AuditObject(a.Volume)}
	err := auditLog.append(tx, func(seq uint64) any { r.Seq = seq; return r })
	return r, err
}

// SetAuditStatus stores the status of an entry, unless the entry was removed.
func SetAuditStatus(tx *Tx, r AuditRecord, status int) (AuditRecord, error) {
	r.Status = status
	if r.Seq < auditLog.bounds(tx).Oldest {
		return r, nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return r, err
	}
	return r, tx.write(auditLog.key(r.Seq), text)
}

// ReadAudit returns up to limit entries of the audit log after seq since that f
// selects, oldest first. Entries that retention has removed are left out. It is for views.
func ReadAudit(tx *Tx, since uint64, limit int, f v1.AuditFilter) ([]v1.AuditEntry, error) {
	return readAudit(tx, auditLog.after(tx, since), limit, f)
}

// ReadLastAudit returns the last entries of the audit log that f selects, at most limit, oldest
// first. It is for views.
func ReadLastAudit(tx *Tx, limit int, f v1.AuditFilter) ([]v1.AuditEntry, error) {
	list, err := readAudit(tx, auditLog.backward(tx), limit, f)
	slices.Reverse(list)
	return list, err
}

func readAudit(tx *Tx, entries iter.Seq2[numbered, error], limit int, f v1.AuditFilter) ([]v1.AuditEntry, error) {
	list := []v1.AuditEntry{}
	for n, err := range entries {
		if err != nil || len(list) >= limit {
			return list, err
		}
		var r AuditRecord
		if err := unmarshal(n.item, &r); err != nil {
			tx.store.log.Error("cannot read an entry of the audit log", "seq", n.seq, "err", err)
			continue
		}
		if selects(f, r) {
			list = append(list, r.AuditEntry)
		}
	}
	return list, nil
}

func selects(f v1.AuditFilter, r AuditRecord) bool {
	return (f.Container == "" || f.Container == r.Container) && (f.Volume == "" || f.Volume == r.Volume) && f.Matches(r.Actor)
}

// TrimAudit removes the entries that are older than before, and all but the newest
// keep, like TrimEvents.
func (s *Store) TrimAudit(before time.Time, keep int) (removed int, err error) {
	return auditLog.trim(s, before, keep)
}
