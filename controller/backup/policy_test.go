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
	for _, b := range store.Backups.List(w.store.Read()) {
		if b.Spec.Policy {
			n[b.Status.State]++
		}
	}
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
		entries, err := store.ReadAudit(w.store.Read(), 0, 1000, v1.AuditFilter{Volume: "v"})
		require.Equal(t, 49, len(entries), "an entry for each backup of the policy")
		require.Equal(t, "backup.create", entries[0].Action)
		require.Equal(t, v1.Controller(), entries[0].Actor)
		require.NoError(t, err)
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
		first := store.Backups.IDs(w.store.Read())[0]
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

// TestPolicyKeepsWhatATransferMoves: while a volume is handed over to another node, its backups may be that node's.
func TestPolicyKeepsWhatATransferMoves(t *testing.T) {
	live(t, func(w *world) {
		w.policy(v1.PolicySpec{Every: v1.Duration(time.Hour), Keep: 1, Target: v1.TargetLocal})
		time.Sleep(67 * time.Minute)
		first := store.Backups.IDs(w.store.Read())[0]
		w.update(func(tx *store.Tx) error { return store.Reserve(tx, v1.ByTransfer("t"), "v") })
		time.Sleep(3 * time.Hour)
		w.want(first, v1.JobCompleted)
		w.update(func(tx *store.Tx) error { return store.EndRestore(tx, v1.ByTransfer("t"), "v") })
		time.Sleep(2 * time.Hour)
		_, err := w.get(first)
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

// purged requires that a restore into the volume w has ended and went with its backup.
func (w *world) purged(id string) {
	w.t.Helper()
	_, err := store.Restores.Get(w.store.Read(), id)
	require.ErrorIs(w.t, err, store.ErrNotFound)
	require.Equal(w.t, "tree of v", w.trees.get("w"))
}

// TestPruningGoesOnBehindARead: of the superfluous backups one is read by a restore. The
// older ones go, and it goes when the restore has ended.
func TestPruningGoesOnBehindARead(t *testing.T) {
	live(t, func(w *world) {
		w.policy(v1.PolicySpec{Every: v1.Duration(time.Hour), Keep: 5, Target: v1.TargetLocal})
		time.Sleep(5*time.Hour + 7*time.Minute)
		require.Equal(t, map[v1.JobState]int{v1.JobCompleted: 5}, w.states())
		made := backupsOfPolicy(w.store.Read(), "v")
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

// TestPolicyEndsWithItsMaker: a policy makes no backup, and types no command, once its token is revoked
// or the container that it named is another one. That of a panel goes on.
func TestPolicyEndsWithItsMaker(t *testing.T) {
	live(t, func(w *world) {
		users(w)
		var uid string
		c, err := store.Containers.Get(w.store.Read(), "mc")
		uid = c.Meta.UID
		require.NoError(t, err)
		policy := func(m v1.Maker) {
			w.update(func(tx *store.Tx) error {
				_ = store.Policies.Purge(tx, "v")
				s := v1.BackupSpec{}
				quiesce(&s)
				return store.Policies.Create(tx, "v", v1.PolicySpec{Every: v1.Duration(time.Hour), Keep: 100, Target: v1.TargetLocal, Quiesce: s.Quiesce, Maker: m})
			})
			time.Sleep(67 * time.Minute)
			synctest.Wait()
		}
		message := func() (text string) {
			p, err := store.Policies.Get(w.store.Read(), "v")
			text = p.Status.Message
			require.NoError(t, err)
			return text
		}
		policy(v1.Maker{TokenID: "t", UID: uid})
		require.Len(t, w.console.commands(), 2)
		w.mu.Lock()
		w.revoked = true
		w.mu.Unlock()
		time.Sleep(5 * time.Hour)
		require.Equal(t, map[v1.JobState]int{v1.JobCompleted: 1}, w.states())
		require.Equal(t, "The policy has ended: the token that requested it is no longer valid for this volume; set it again", message())
		policy(v1.Maker{UID: "of the one before"})
		require.Equal(t, map[v1.JobState]int{v1.JobCompleted: 1}, w.states())
		require.Contains(t, message(), "container mc that it named is deleted")
		require.Len(t, w.console.commands(), 2)
		policy(v1.Maker{})
		require.Equal(t, map[v1.JobState]int{v1.JobCompleted: 2}, w.states())
		require.Len(t, w.console.commands(), 4)

		w.backup("waited", func(s *v1.BackupSpec) { quiesce(s); s.Maker.TokenID = "t" })
		require.Equal(t, "quiesce: the token that requested it is no longer valid for this volume", w.want("waited", v1.JobFailed).Status.Message)
		require.Len(t, w.console.commands(), 4)
	})
}

// newest returns when the backups of the policy were made, by the host's clock.
func (w *world) newest() (at []time.Time) {
	w.t.Helper()
	for _, b := range backupsOfPolicy(w.store.Read(), "v") {
		at = append(at, b.Meta.CreatedAt)
	}
	return at
}

// TestPolicyAfterTheClockWentBack: the newest backups are those that were made last, whatever
// the clock showed.
func TestPolicyAfterTheClockWentBack(t *testing.T) {
	live(t, func(w *world) {
		w.policy(v1.PolicySpec{Every: v1.Duration(time.Hour), Keep: 2, Target: v1.TargetLocal})
		time.Sleep(4 * time.Hour)
		before := w.newest()
		w.clock.Store(-int64(30 * 24 * time.Hour))
		time.Sleep(3 * time.Hour)
		require.Equal(t, map[v1.JobState]int{v1.JobCompleted: 2}, w.states())
		after := w.newest()
		require.NotEqual(t, before, after, "the backups that were made last are kept")
		for _, at := range after {
			require.True(t, at.Before(before[1]), "made after the clock was set back")
		}
	})
}

// TestPolicyWithCron: a life by a clock on working days. Times that were missed while berth was away are made up once, and a
// clock that is set back by an hour repeats nothing. The period is the longer one of the last and the present.
func TestPolicyWithCron(t *testing.T) {
	const day = 24 * time.Hour
	synctest.Test(t, func(t *testing.T) { // from Saturday, 2000-01-01 00:00 UTC
		w := newWorld(t)
		stop := w.run()
		w.policy(v1.PolicySpec{Cron: "0 4 * * MON-FRI", Timezone: "Europe/Berlin", Keep: 100, Target: v1.TargetLocal})
		status := func() v1.PolicyStatus {
			synctest.Wait()
			p, err := store.Policies.Get(w.store.Read(), "v")
			require.NoError(t, err)
			return p.Status
		}
		wants := func(completed int, period time.Duration) {
			t.Helper()
			require.Equal(t, completed, w.states()[v1.JobCompleted])
			require.Equal(t, period, time.Duration(status().Period).Round(time.Hour))
		}
		wants(0, 51*time.Hour)
		require.Equal(t, "2000-01-03T03:00:00Z", status().NextRunAt.Format(time.RFC3339))
		time.Sleep(2*day + 3*time.Hour + time.Second)
		wants(1, 51*time.Hour) // Monday: since the policy was set
		time.Sleep(day)
		wants(2, day)
		w.clock.Store(-int64(time.Hour))
		time.Sleep(2 * time.Hour)
		wants(2, day)
		w.clock.Store(0)
		time.Sleep(3*day - 2*time.Hour)
		wants(5, 3*day) // Friday: until Monday
		time.Sleep(3 * day)
		wants(6, 3*day)
		stop()
		time.Sleep(3*day + time.Hour)
		stop = w.run()
		wants(7, day)
		require.Equal(t, "2000-01-14T03:00:00Z", status().NextRunAt.Format(time.RFC3339))
		w.update(func(tx *store.Tx) error {
			return store.Policies.SetSpec(tx, "v", func(s *v1.PolicySpec) error {
				s.Cron, s.Timezone, s.Every = "", "", v1.Duration(time.Hour)
				return nil
			})
		})
		time.Sleep(67 * time.Minute)
		wants(8, 0)
		stop()
	})
}
