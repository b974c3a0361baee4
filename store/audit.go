package store

import (
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "berth/api/v1"
)

// AuditRecord is a stored entry of the audit log, with what filters need.
type AuditRecord struct {
	v1.AuditEntry
	Container string `json:"container,omitempty"`
	Volume    string `json:"volume,omitempty"`
	Tenant    string `json:"tenant,omitempty"` // see package limit; empty: the administrator, or berth
}

// AppendAudit stores an entry with the next seq and the time of the update.
func AppendAudit(tx *Tx, actor v1.Actor, a v1.Audit, status int) (AuditRecord, error) {
	e := v1.AuditEntry{Time: tx.now, Actor: actor, Action: a.Action, Object: v1.AuditObject(a.Name()), RequestID: a.RequestID,
		Status: status, Skipped: a.Skipped}
	r := AuditRecord{e, v1.AuditObject(a.Container), v1.AuditObject(a.Volume), a.Tenant}
	err := auditLog.append(tx, func(seq uint64) any { r.Seq = seq; return r })
	return r, err
}

// SetAuditStatus stores the status of an entry, unless the entry was removed.
func SetAuditStatus(tx *Tx, r AuditRecord, status int) (AuditRecord, error) {
	r.Status = status
	if r.Seq < auditLog.bounds(tx).Oldest || r.Seq <= tx.store.dropped.of(r.Tenant) {
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

// TrimAudit removes the entries that are older than before, and all but keep: first the oldest ones of
// tenants that are over their quota, then the oldest of all.
func (s *Store) TrimAudit(before time.Time, keep int) (removed int, err error) {
	dropped, err := s.trimTenants(keep)
	if err != nil {
		return dropped, err
	}
	removed, err = auditLog.trim(s, before, keep)
	s.dropped.forget(auditLog.bounds(s.Read()).Oldest)
	return dropped + removed, err
}

// The parts of a full audit log.
const (
	tenantPart = 20 // that is the quota of a tenant: a twentieth
	freePart   = 10 // that is free after entries over the quotas were removed: reading all of them takes seconds
)

// trimTenants removes the oldest entries of the tenants that are over their quota, if the audit log has more
// than keep.
func (s *Store) trimTenants(keep int) (removed int, err error) {
	var beyond []uint64
	newest := map[string]uint64{} // by tenant
	tx := s.Read()
	kept := int(auditLog.bounds(tx).kept())
	if kept <= keep || keep == 0 {
		return 0, nil
	}
	err = auditLog.beyond(tx, keep/tenantPart, kept-keep+keep/freePart, func(seq uint64, tenant string) int {
		beyond, newest[tenant] = append(beyond, seq), seq
		return len(beyond)
	})
	if err != nil || len(beyond) == 0 {
		return 0, err
	}
	s.dropped.add(newest)
	return len(beyond), auditLog.drop(s, beyond)
}

// dropped is, by tenant, the newest entry of the audit log that was removed over its quota: all older ones of the
// tenant were too. A request that is in flight when berth ends stores no status, so it is not on the disk.
type dropped struct {
	mu     sync.Mutex
	newest map[string]uint64
}

func (d *dropped) add(newest map[string]uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.newest == nil {
		d.newest = map[string]uint64{}
	}
	maps.Copy(d.newest, newest)
}

func (d *dropped) of(tenant string) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.newest[tenant]
}

// forget forgets the entries before the oldest one that is kept.
func (d *dropped) forget(oldest uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.newest, func(_ string, seq uint64) bool { return seq < oldest })
}

// beyond calls add with the oldest values of each tenant, all but its newest quota, until add returns most: how
// many it has.
func (l sequence) beyond(tx *Tx, quota, most int, add func(seq uint64, tenant string) int) error {
	has := map[string]int{}
	each := func(fn func(seq uint64, tenant string) bool) error {
		for n, err := range l.after(tx, 0) {
			var value struct {
				Tenant string `json:"tenant"`
			}
			if err != nil {
				return err
			}
			_ = unmarshal(n.item, &value) // one that cannot be read has no tenant
			if value.Tenant != "" && !fn(n.seq, value.Tenant) {
				break
			}
		}
		return nil
	}
	if err := each(func(_ uint64, tenant string) bool { has[tenant]++; return true }); err != nil {
		return err
	}
	return each(func(seq uint64, tenant string) bool {
		if has[tenant] <= quota {
			return true
		}
		has[tenant]--
		return add(seq, tenant) < most
	})
}
