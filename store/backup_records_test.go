package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func newBackup(t *testing.T, s *Store, id string, target v1.Target, bytes int64) {
	t.Helper()
	require.NoError(t, s.Update(func(tx *Tx) error {
		if err := Backups.Create(tx, id, v1.BackupSpec{VolumeID: "v", Target: target}); err != nil {
			return err
		}
		return Backups.SetStatus(tx, id, func(st *v1.BackupStatus) { st.State, st.Size = v1.JobCompleted, bytes })
	}))
}

func requireTotal(t *testing.T, s *Store, target v1.Target, n, bytes int64) {
	t.Helper()
	require.NoError(t, s.View(func(tx *Tx) error {
		total, err := BackupsIn(tx, target)
		require.Equal(t, BackupTotal{n, bytes}, total)
		return err
	}))
}

// TestBackupTotals: each target has its own, and a backup leaves it at its purge only.
func TestBackupTotals(t *testing.T) {
	s := openIn(t, t.TempDir())
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
	require.NoError(t, s.View(func(tx *Tx) error {
		b, err := BackupBytes(tx, "b")
		require.EqualValues(t, 50, b)
		none, _ := BackupBytes(tx, "a")
		require.Zero(t, none)
		return err
	}))

	require.NoError(t, s.Update(func(tx *Tx) error {
		return errors.Join(tx.set("backup/b/spec", []byte("cut")), tx.set("backup/b/status", []byte("cut")))
	}))
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
	require.NoError(t, s.View(func(tx *Tx) error {
		b, err := Backups.Get(tx, id)
		require.NoError(t, err)
		first = b.Status.Skipped
		list, err = SkippedOf(tx, b)
		return err
	}))
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
	require.NoError(t, s.View(func(tx *Tx) error {
		for e := range tx.scan("", "") {
			require.NotContains(t, e.key, "/a", "nothing is left of the backup")
		}
		return tx.err
	}))
}

const oldBackups = 16

// versionThree returns the directory of a store of version 3: backups with the skipped
// entries in their statuses, every fourth with few ones, and one that cannot be decoded.
func versionThree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s, err := open(dir, Options{}, migrations()[:2])
	require.NoError(t, err)
	for i := range oldBackups {
		target := v1.Targets()[i%2]
		newBackup(t, s, fmt.Sprintf("b-%02d", i), target, int64(i))
	}
	for i := range oldBackups {
		n := 1000
		if i%4 == 0 {
			n = 3
		}
		require.NoError(t, s.Update(func(tx *Tx) error {
			return Backups.SetStatus(tx, fmt.Sprintf("b-%02d", i), func(st *v1.BackupStatus) {
				st.Skipped, st.SkippedTotal = longSkipped(n, 262), int64(n)
			})
		}))
	}
	require.NoError(t, s.Update(func(tx *Tx) error { return tx.set("backup/broken/spec", []byte("cut")) }))
	require.NoError(t, s.Update(func(tx *Tx) error {
		var own []string
		for e := range tx.scan("", "") {
			if strings.HasPrefix(e.key, "backup-size/") || strings.HasPrefix(e.key, "meta/backups/") {
				own = append(own, e.key)
			}
		}
		for _, key := range own {
			if err := tx.remove(key); err != nil {
				return err
			}
		}
		return tx.err
	}))
	require.NoError(t, s.Close())
	return dir
}

func requireSplit(t *testing.T, s *Store) {
	t.Helper()
	requireTotal(t, s, v1.TargetLocal, oldBackups/2, 56)
	requireTotal(t, s, v1.TargetS3, oldBackups/2, 64)
	for i := range oldBackups {
		list, first := skipped(t, s, fmt.Sprintf("b-%02d", i))
		if i%4 == 0 {
			require.Equal(t, longSkipped(3, 262), list)
			require.Len(t, first, 3)
			continue
		}
		require.Equal(t, longSkipped(1000, 262), list)
		require.Equal(t, list[:v1.ListedSkippedBytes/262], first)
	}
}

func TestSkippedMigrationSurvivesKills(t *testing.T) {
	migrateWithKills(t, versionThree(t), 3, oldBackups/skippedChunk, requireSplit)
}
