package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func alice() v1.Actor { return v1.Actor{TokenID: "t", Name: "alice", Via: v1.ViaHTTP} }

// auditOf returns the entries that a filter selects.
func auditOf(t *testing.T, s *Store, f v1.AuditFilter) (list []v1.AuditEntry) {
	t.Helper()
	require.NoError(t, s.View(func(tx *Tx) (err error) {
		list, err = ReadAudit(tx, 0, 1000, f)
		return err
	}))
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
	require.NoError(t, r.Finish(200, nil, false))
	require.Equal(t, before+1, commits(t, registry), "the change and its entry are one commit")
	require.Error(t, r.Update(change), "it exists")
	require.NoError(t, r.MustUpdate(func(tx *Tx) error { return Containers.Purge(tx, "mc") }))
	require.NoError(t, r.Finish(500, nil, false))

	refused := NewRequest(s, alice(), v1.Audit{Action: "container.start", Object: "x"})
	require.Error(t, refused.Update(func(*Tx) error { return errors.New("no") }))
	require.NoError(t, refused.Finish(404, nil, false))
	require.NoError(t, NewRequest(s, alice(), v1.Audit{}).Finish(200, nil, false))

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
		require.NoError(t, NewRequest(s, actor, a).Finish(200, nil, false))
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
	require.NoError(t, NewRequest(s, alice(), v1.Audit{Action: "a.a"}).Finish(200, nil, false))
	require.Equal(t, []uint64{3, 4}, seqs(v1.AuditFilter{}), "the seq goes on")
	_, err = s.TrimAudit(time.Now().Add(time.Hour), 10)
	require.NoError(t, err)
	require.Empty(t, seqs(v1.AuditFilter{}))
	require.NoError(t, NewRequest(s, alice(), v1.Audit{Action: "a.a"}).Finish(200, nil, false))
	require.Equal(t, []uint64{5}, seqs(v1.AuditFilter{}))
}

// commits returns how often the store has written to the disk.
func commits(t *testing.T, r *prometheus.Registry) int {
	t.Helper()
	families, err := r.Gather()
	require.NoError(t, err)
	return int(families[0].GetMetric()[0].GetHistogram().GetSampleCount())
}
