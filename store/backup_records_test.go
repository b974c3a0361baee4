package store

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/store/kv"
)

func newBackup(t *testing.T, s *Store, id string, target v1.Target, bytes int64) {
	t.Helper()
	require.NoError(t, s.Update(func(tx *Tx) error {
		if err := Backups.Create(tx, id, v1.BackupSpec{VolumeID: "v", BackupRequest: v1.BackupRequest{Target: target}}); err != nil {
			return err
		}
		return Backups.SetStatus(tx, id, func(st *v1.BackupStatus) { st.State, st.Size = v1.JobCompleted, bytes })
	}))
}

func requireTotal(t *testing.T, s *Store, target v1.Target, n, bytes int64) {
	t.Helper()
	require.Equal(t, BackupTotal{n, bytes}, BackupTotals(s.Read())[target])
}

// TestBackupTotals: each target has its own, and a backup leaves it at its purge only.
func TestBackupTotals(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	newBackup(t, s, "a", v1.TargetLocal, 100)
	newBackup(t, s, "b", v1.TargetLocal, 50)
	newBackup(t, s, "c", v1.TargetS3, 7)
	newBackup(t, s, "pending", v1.TargetLocal, 0)
	requireTotal(t, s, v1.TargetLocal, 3, 150)
	requireTotal(t, s, v1.TargetS3, 1, 7)
	require.NoError(t, s.Update(func(tx *Tx) error { return Backups.Delete(tx, "a") }))
	requireTotal(t, s, v1.TargetLocal, 3, 150)
	require.Error(t, s.Update(func(tx *Tx) error { return errors.Join(Backups.Purge(tx, "a"), errors.New("refused")) }))
	requireTotal(t, s, v1.TargetLocal, 3, 150)
	require.NoError(t, s.Update(func(tx *Tx) error {
		require.NoError(t, Backups.Purge(tx, "a"))
		return Backups.Purge(tx, "a")
	}))
	requireTotal(t, s, v1.TargetLocal, 2, 50)
	require.NoError(t, s.Close())
	s = openIn(t, dir)
	requireTotal(t, s, v1.TargetLocal, 2, 50)
	require.NoError(t, s.Update(func(tx *Tx) error { return Backups.Purge(tx, "b") }))
	requireTotal(t, s, v1.TargetLocal, 1, 0)
	requireTotal(t, s, v1.TargetS3, 1, 7)
}

// longSkipped returns n skipped entries whose paths take size bytes each as JSON.
func longSkipped(n, size int) (list []v1.Skipped) {
	for i := range n {
		list = append(list, v1.Skipped{Path: fmt.Sprintf("%0*d", size-2, i), Reason: v1.SkippedSpecial})
	}
	return list
}

func skipped(t *testing.T, s *Store, id string) (list, first []v1.Skipped) {
	t.Helper()
	tx := s.Read()
	b, err := Backups.Get(tx, id)
	require.NoError(t, err)
	first = b.Status.Skipped
	list, err = SkippedOf(tx, b)
	require.NoError(t, err)
	return list, first
}

func TestSkippedHasItsOwnKey(t *testing.T) {
	s := openIn(t, t.TempDir())
	newBackup(t, s, "a", v1.TargetLocal, 1)
	all := longSkipped(1000, 250)
	require.NoError(t, s.Update(func(tx *Tx) error { return SetSkipped(tx, "a", all) }))
	list, first := skipped(t, s, "a")
	require.Equal(t, all, list)
	require.Empty(t, first)
	require.NoError(t, s.Update(func(tx *Tx) error { return Backups.Purge(tx, "a") }))
	require.NoError(t, s.db.View(func(txn *kv.Txn) error {
		for item := range txn.Scan("", "") {
			require.NotContains(t, item.Key(), "/a", "nothing is left of the backup")
		}
		return nil
	}))
}

// TestDamagedReservation: a volume whose reservation cannot be read counts as being restored.
func TestDamagedReservation(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	damage(t, s, map[string]string{restoringPrefix + "v": "{cut"})
	tx := openIn(t, dir).Read()
	require.NotEmpty(t, Restoring(tx, "v"))
	require.Empty(t, Restoring(tx, "w"))
}

// TestRestoreEndsItsOwnReservation, and not that of another one, which may run on the same volume or another.
func TestRestoreEndsItsOwnReservation(t *testing.T) {
	s := openIn(t, "")
	restoring := func(volume string) (id string) {
		id = Restoring(s.Read(), volume)
		return id
	}
	require.NoError(t, s.Update(func(tx *Tx) error {
		for _, n := range []string{"1", "2"} {
			if err := BeginRestore(tx, "r"+n, v1.RestoreSpec{RestoreRequest: v1.RestoreRequest{VolumeID: "v" + n}}); err != nil {
				return err
			}
		}
		return EndRestore(tx, "earlier", "v1")
	}))
	require.Equal(t, "r1", restoring("v1"))
	require.NoError(t, s.Update(func(tx *Tx) error { return AbandonRestore(tx, "r1") }))
	require.Empty(t, restoring("v1"))
	require.Equal(t, "r2", restoring("v2"))
	require.NoError(t, s.Update(func(tx *Tx) error { return EndRestore(tx, "r2", "v2") }))
	require.Empty(t, restoring("v2"))
}
