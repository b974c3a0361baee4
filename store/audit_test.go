package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// addAudit stores n entries of a tenant.
func addAudit(t *testing.T, s *Store, tenant string, n int) {
	t.Helper()
	require.NoError(t, s.Update(func(tx *Tx) error {
		for range n {
			if _, err := AppendAudit(tx, v1.Actor{Name: tenant}, v1.Audit{Action: "file.write", Tenant: tenant}, 200); err != nil {
				return err
			}
		}
		return nil
	}))
}

// TestTenantKeepsToItsShare: a tenant that has filled the audit log loses its own oldest entries, and nobody
// else any. Numbers are not given again, and what is kept is as many as before.
func TestTenantKeepsToItsShare(t *testing.T) {
	s := openIn(t, "")
	add := func(tenant string, n int) { addAudit(t, s, tenant, n) }
	kept := func() (by map[string]int, all int) {
		by = map[string]int{}
		tx := s.Read()
		list, err := ReadAudit(tx, 0, 10_000, v1.AuditFilter{})
		for _, e := range list {
			by[e.Actor.Name]++
		}
		all = len(list)
		require.EqualValues(t, all, auditLog.bounds(tx).kept())
		require.NoError(t, err)
		return by, all
	}
	long := time.Now().Add(-time.Hour)
	add("", 300)
	add("good", 40)
	for range 10 {
		add("evil", 800)
		_, err := s.TrimAudit(long, 1000)
		require.NoError(t, err)
		by, all := kept()
		require.Equal(t, []int{300, 40}, []int{by[""], by["good"]})
		require.LessOrEqual(t, all, 1000)
	}
	add("", 2000)
	_, err := s.TrimAudit(long, 1000)
	require.NoError(t, err)
	by, all := kept()
	require.Equal(t, []int{1000, 1000}, []int{by[""], all}, "without a tenant beyond its share the oldest of all go")
	_, err = s.TrimAudit(time.Now().Add(time.Hour), 1000)
	require.NoError(t, err)
	tx := s.Read()
	require.EqualValues(t, 300+40+8000+2000, auditLog.bounds(tx).Newest)
	require.Zero(t, auditLog.bounds(tx).Holes)
}

// TestTenantHasAllOfItsShare of a full log.
func TestTenantHasAllOfItsShare(t *testing.T) {
	s := openIn(t, "")
	addAudit(t, s, "", 960)
	addAudit(t, s, "evil", 60)
	_, err := s.TrimAudit(time.Now().Add(-time.Hour), 1000)
	require.NoError(t, err)
	require.Len(t, auditOf(t, s, v1.AuditFilter{Actor: "evil"}), 1000/tenantPart)
}
