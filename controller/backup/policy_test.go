package backup

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/store"
)

func (w *world) policy(spec v1.PolicySpec) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error { return store.Policies.Create(tx, "v", spec) })
}

// states counts the backups of the policy by state.
func (w *world) states() map[v1.JobState]int {
	w.t.Helper()
	synctest.Wait()
	n := map[v1.JobState]int{}
	require.NoError(w.t, w.store.View(func(tx *store.Tx) error {
		for _, b := range store.Backups.List(tx) {
			if b.Spec.Policy {
				n[b.Status.State]++
			}
		}
		return nil
	}))
	return n
}

func TestPolicyMakesAndRemovesBackups(t *testing.T) {
	live(t, func(w *world) {
		w.backup("manual", nil)
		w.policy(v1.PolicySpec{Every: v1.Duration(time.Hour), Keep: 3, Target: v1.TargetLocal})
		time.Sleep(59 * time.Minute)
		require.Empty(t, w.states())
		time.Sleep(8 * time.Minute)
		require.Equal(t, map[v1.JobState]int{v1.JobCompleted: 1}, w.states())
		time.Sleep(24 * time.Hour)
		require.Equal(t, map[v1.JobState]int{v1.JobCompleted: 3}, w.states())
		w.want("manual", v1.JobCompleted)

		w.target.set(func() { w.target.put = errors.New("denied") })
		time.Sleep(24 * time.Hour)
		require.Equal(t, map[v1.JobState]int{v1.JobCompleted: 3, v1.JobFailed: 3}, w.states())
		require.NoError(t, w.store.View(func(tx *store.Tx) error {
			entries, err := store.ReadAudit(tx, 0, 1000, v1.AuditFilter{Volume: "v"})
			require.Equal(t, 49, len(entries), "an entry for each backup of the policy")
			require.Equal(t, "backup.create", entries[0].Action)
			require.Equal(t, v1.Controller(), entries[0].Actor)
			return err
		}))
	})
}

// TestPolicyMakesUpOnce: a run that was missed while berth was away.
func TestPolicyMakesUpOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.run()
		w.policy(v1.PolicySpec{Every: v1.Duration(time.Hour), Keep: 10, Target: v1.TargetLocal})
		stop()
		time.Sleep(100 * time.Hour)
		stop = w.run()
		time.Sleep(59 * time.Minute)
		require.Equal(t, map[v1.JobState]int{v1.JobCompleted: 1}, w.states())
		stop()
	})
}

func TestPolicyKeepsWhatRestoreReads(t *testing.T) {
	live(t, func(w *world) {
		w.policy(v1.PolicySpec{Every: v1.Duration(time.Hour), Keep: 1, Target: v1.TargetLocal})
		time.Sleep(67 * time.Minute)
		var first string
		require.NoError(t, w.store.View(func(tx *store.Tx) error { first = store.Backups.IDs(tx)[0]; return nil }))
		w.volume("w", "w")
		w.mu.Lock()
		w.busy = "mc"
		w.mu.Unlock()
		w.restore("r", first, "w")
		time.Sleep(3 * time.Hour)
		w.want(first, v1.JobCompleted)
		w.mu.Lock()
		w.busy = ""
		w.mu.Unlock()
		time.Sleep(2 * time.Hour)
		w.purged("r")
		_, err := w.get(first)
		require.ErrorIs(t, err, store.ErrNotFound)
		require.Equal(t, 1, w.states()[v1.JobCompleted])
	})
}

// purged requires that a restore into the volume w has ended and went with its backup.
func (w *world) purged(id string) {
	w.t.Helper()
	require.NoError(w.t, w.store.View(func(tx *store.Tx) error {
		_, err := store.Restores.Get(tx, id)
		require.ErrorIs(w.t, err, store.ErrNotFound)
		return nil
	}))
	require.Equal(w.t, "tree of v", w.trees.get("w"))
}

// TestPruningGoesOnBehindARead: of the superfluous backups one is read by a restore. The
// older ones go, and it goes when the restore has ended.
func TestPruningGoesOnBehindARead(t *testing.T) {
	live(t, func(w *world) {
		w.policy(v1.PolicySpec{Every: v1.Duration(time.Hour), Keep: 5, Target: v1.TargetLocal})
		time.Sleep(5*time.Hour + 7*time.Minute)
		require.Equal(t, map[v1.JobState]int{v1.JobCompleted: 5}, w.states())
		var made []v1.Backup
		require.NoError(t, w.store.View(func(tx *store.Tx) (err error) { made, err = backupsOfPolicy(tx, "v"); return err }))
		w.mu.Lock()
		w.busy = "mc"
		w.mu.Unlock()
		w.volume("w", "w")
		w.restore("r", made[1].Meta.ID, "w")
		w.update(func(tx *store.Tx) error {
			return store.Policies.SetSpec(tx, "v", func(s *v1.PolicySpec) error { s.Keep = 1; return nil })
		})
		time.Sleep(time.Minute)
		require.Equal(t, map[v1.JobState]int{v1.JobCompleted: 2}, w.states())
		w.want(made[0].Meta.ID, v1.JobCompleted)
		w.want(made[1].Meta.ID, v1.JobCompleted)
		w.mu.Lock()
		w.busy = ""
		w.mu.Unlock()
		time.Sleep(3 * time.Minute)
		require.Equal(t, map[v1.JobState]int{v1.JobCompleted: 1}, w.states())
	})
}
