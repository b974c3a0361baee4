package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/store/kv"
)

func alice() v1.Actor { return v1.Actor{TokenID: "t", Name: "alice", Via: v1.ViaHTTP} }

// auditOf returns the entries that a filter selects.
func auditOf(t *testing.T, s *Store, f v1.AuditFilter) (list []v1.AuditEntry) {
	t.Helper()
	list, err := ReadAudit(s.Read(), 0, 1000, f)
	require.NoError(t, err)
	return list
}

func TestRequestStoresItsEntryOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	s, err := Open("", Options{Registerer: registry})
	require.NoError(t, err)
	defer s.Close()
	before := commits(t, registry)
	r := NewRequest(s, alice(), v1.Audit{Action: "container.create", RequestID: "id"})
	change := func(tx *Tx) error {
		require.Equal(t, alice(), tx.Actor())
		return Containers.Create(tx, "mc", v1.ContainerSpec{})
	}
	require.NoError(t, r.Update(change))
	require.NoError(t, r.Finish(200, nil))
	require.Equal(t, before+1, commits(t, registry), "the change and its entry are one commit")
	require.Error(t, r.Update(change), "it exists")
	require.NoError(t, r.MustUpdate(func(tx *Tx) error { return Containers.Purge(tx, "mc") }))
	require.NoError(t, r.Finish(500, nil))

	refused := NewRequest(s, alice(), v1.Audit{Action: "container.start", Object: "x"})
	require.Error(t, refused.Update(func(*Tx) error { return errors.New("no") }))
	require.NoError(t, refused.Finish(404, nil))
	require.NoError(t, NewRequest(s, alice(), v1.Audit{}).Finish(200, nil))

	list := auditOf(t, s, v1.AuditFilter{})
	require.Len(t, list, 2)
	require.False(t, list[0].Time.IsZero())
	list[0].Time, list[1].Time = time.Time{}, time.Time{}
	require.Equal(t, []v1.AuditEntry{
		{Seq: 1, Actor: alice(), Action: "container.create", Object: "mc", RequestID: "id", Status: 500},
		{Seq: 2, Actor: alice(), Action: "container.start", Object: "x", Status: 404}}, list)
	require.NoError(t, s.Update(func(tx *Tx) error { require.Equal(t, v1.Controller(), tx.Actor()); return nil }))
}

func TestAuditFilters(t *testing.T) {
	s := openIn(t, "")
	for i, a := range []v1.Audit{{Action: "a.a", Container: "mc"}, {Action: "a.a", Volume: "v", Path: "x/y"}, {Action: "a.a", Container: "mc", Volume: "v"}} {
		actor := alice()
		actor.OnBehalfOf = fmt.Sprint("user", i)
		require.NoError(t, NewRequest(s, actor, a).Finish(200, nil))
	}
	seqs := func(f v1.AuditFilter) (seqs []uint64) {
		for _, e := range auditOf(t, s, f) {
			seqs = append(seqs, e.Seq)
		}
		return seqs
	}
	require.Equal(t, []uint64{1, 2, 3}, seqs(v1.AuditFilter{Actor: "alice"}))
	require.Equal(t, []uint64{1, 2, 3}, seqs(v1.AuditFilter{Actor: "t"}))
	require.Equal(t, []uint64{2}, seqs(v1.AuditFilter{Actor: "user1"}))
	require.Empty(t, seqs(v1.AuditFilter{Actor: "user"}), "exactly")
	require.Equal(t, []uint64{1, 3}, seqs(v1.AuditFilter{Container: "mc"}))
	require.Equal(t, []uint64{2, 3}, seqs(v1.AuditFilter{Volume: "v"}))
	require.Equal(t, []uint64{3}, seqs(v1.AuditFilter{Container: "mc", Volume: "v", Actor: "user2"}))
	require.Equal(t, "v/x/y", auditOf(t, s, v1.AuditFilter{Actor: "user1"})[0].Object)

	removed, err := s.TrimAudit(time.Time{}, 1)
	require.NoError(t, err)
	require.Equal(t, 2, removed)
	require.Equal(t, []uint64{3}, seqs(v1.AuditFilter{}))
	require.NoError(t, NewRequest(s, alice(), v1.Audit{Action: "a.a"}).Finish(200, nil))
	require.Equal(t, []uint64{3, 4}, seqs(v1.AuditFilter{}), "the seq goes on")
	_, err = s.TrimAudit(time.Now().Add(time.Hour), 10)
	require.NoError(t, err)
	require.Empty(t, seqs(v1.AuditFilter{}))
	require.NoError(t, NewRequest(s, alice(), v1.Audit{Action: "a.a"}).Finish(200, nil))
	require.Equal(t, []uint64{5}, seqs(v1.AuditFilter{}))
}

// commits returns how often the store has written to the disk.
func commits(t *testing.T, r *prometheus.Registry) int {
	t.Helper()
	families, err := r.Gather()
	require.NoError(t, err)
	return int(families[0].GetMetric()[0].GetHistogram().GetSampleCount())
}

// TestRequestIsCheckedInItsUpdate: what was admitted may be forbidden when its update runs. Then nothing is
// stored, neither the change nor the entry of the audit log.
func TestRequestIsCheckedInItsUpdate(t *testing.T) {
	s := openIn(t, t.TempDir())
	revoked := errors.New("revoked")
	for _, update := range []func(*Request) func(func(*Tx) error) error{
		func(r *Request) func(func(*Tx) error) error { return r.Update },
		func(r *Request) func(func(*Tx) error) error { return r.MustUpdate },
	} {
		r := NewRequest(s, v1.Controller(), v1.Audit{Action: "container.create"})
		r.Check = func(*Tx) error { return revoked }
		require.ErrorIs(t, update(r)(func(tx *Tx) error { return Containers.Create(tx, "mc", v1.ContainerSpec{}) }), revoked)
	}
	tx := s.Read()
	require.Empty(t, Containers.IDs(tx))
	entries, err := ReadAudit(tx, 0, 10, v1.AuditFilter{})
	require.Empty(t, entries)
	require.NoError(t, err)
}

// TestTakenBackHasNoOutcome: a repetition of a request that took back what it had made is carried out again.
func TestTakenBackHasNoOutcome(t *testing.T) {
	s := openIn(t, "")
	r := NewRequest(s, v1.Actor{}, v1.Audit{Action: "container.create"})
	r.Outcome = &Outcome{TokenID: "o", Quota: "q", Key: "k", Status: 200}
	found := func() error {
		_, err := FindOutcome(s.Read(), *r.Outcome)
		return err
	}
	require.NoError(t, r.Update(createOp("mc", 1)))
	require.NoError(t, found())
	r.Success = 500
	require.NoError(t, r.Update(func(tx *Tx) error { return Containers.Delete(tx, "mc") }))
	require.ErrorIs(t, found(), ErrNotFound)
}

// TestRequestOfAFailedUpdate has no entry yet: its end stores one.
func TestRequestOfAFailedUpdate(t *testing.T) {
	s := openIn(t, "")
	r := NewRequest(s, alice(), v1.Audit{Action: "container.create"})
	require.ErrorIs(t, r.Update(createOp("big", 2<<20)), ErrTooBig)
	require.False(t, r.Stored())
	require.NoError(t, r.Finish(413, nil))
	list := auditOf(t, s, v1.AuditFilter{})
	require.Len(t, list, 1)
	require.Equal(t, 413, list[0].Status)
}

// TestFinishOnAFullDisk stores the end only of a request that has to succeed.
func TestFinishOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	s, err = Open(dir, Options{MinFree: 1 << 62})
	require.NoError(t, err)
	defer s.Close()
	r := NewRequest(s, alice(), v1.Audit{Action: "container.stop"})
	require.ErrorIs(t, r.Finish(200, nil), ErrDiskFull)
	require.Empty(t, auditOf(t, s, v1.AuditFilter{}))
	require.NoError(t, r.MustFinish(200, nil))
	require.Len(t, auditOf(t, s, v1.AuditFilter{}), 1)
}

// TestEndOfATrimmedEntry stores nothing: retention would never find it.
func TestEndOfATrimmedEntry(t *testing.T) {
	s := openIn(t, "")
	r := NewRequest(s, alice(), v1.Audit{Action: "sftp.session"})
	require.NoError(t, r.Finish(200, nil))
	_, err := s.TrimAudit(time.Time{}, 0)
	require.NoError(t, err)
	require.NoError(t, r.Finish(500, nil))
	require.NoError(t, s.db.View(func(txn *kv.Txn) error {
		for item := range txn.Scan("audit/", "audit/") {
			require.Fail(t, "left", item.Key())
		}
		return nil
	}))
}

// TestEndOfADroppedEntry: an entry that a tenant has pushed out of its share does not come back.
func TestEndOfADroppedEntry(t *testing.T) {
	s := openIn(t, "")
	r := NewRequest(s, alice(), v1.Audit{Action: "session.open", Tenant: "evil"})
	require.NoError(t, r.Finish(101, nil))
	addAudit(t, s, "evil", 1100)
	_, err := s.TrimAudit(time.Now().Add(-time.Hour), 1000)
	require.NoError(t, err)
	before := auditOf(t, s, v1.AuditFilter{})
	require.NoError(t, r.Finish(200, nil))
	require.Equal(t, before, auditOf(t, s, v1.AuditFilter{}))

	newer := NewRequest(s, alice(), v1.Audit{Action: "session.open", Tenant: "evil"})
	require.NoError(t, newer.Finish(101, nil))
	require.NoError(t, newer.Finish(200, nil))
	list := auditOf(t, s, v1.AuditFilter{})
	require.Equal(t, 200, list[len(list)-1].Status)
	require.EqualValues(t, len(list), auditLog.bounds(s.Read()).kept())
}
