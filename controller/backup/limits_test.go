package backup

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/controller/jobs"
	"berth/store"
)

func (w *world) setLimits(change func(*v1.BackupsConfig)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.limits)
}

var errRefused = errors.New("refused")

// TestBackupsFull: an archive beyond max_size leaves nothing, and a deletion makes space.
func TestBackupsFull(t *testing.T) {
	live(t, func(w *world) {
		w.setLimits(func(c *v1.BackupsConfig) { c.MaxSize = 20 })
		w.backup("a", nil)
		w.backup("b", nil)
		w.want("a", v1.JobCompleted)
		w.want("b", v1.JobCompleted)
		w.backup("c", nil)
		require.Equal(t, "The backups of the target local have reached backups.max_size: delete some of them", w.want("c", v1.JobFailed).Status.Message)
		require.Equal(t, 2, w.target.leftover())
		require.Len(t, w.target.begun, 3)
		w.backup("of s3", func(s *v1.BackupSpec) { s.Target = v1.TargetS3 })
		w.want("of s3", v1.JobCompleted)

		w.setLimits(func(c *v1.BackupsConfig) { c.MaxSize = 18 })
		w.backup("d", func(s *v1.BackupSpec) { s.Quiesce = &v1.Quiesce{Container: "mc", Before: "save-off"} })
		w.want("d", v1.JobFailed)
		require.Len(t, w.target.begun, 4, "it did not begin")
		w.update(func(tx *store.Tx) error { return store.Backups.Delete(tx, "a") })
		w.backup("e", nil)
		w.want("e", v1.JobCompleted)
	})
}

// TestBackupsAtOnceShareSpace: two that would fit one by one do not fit together.
func TestBackupsAtOnceShareSpace(t *testing.T) {
	live(t, func(w *world) {
		w.limit = 2
		w.setLimits(func(c *v1.BackupsConfig) { c.MaxSize = 15 })
		hold := make(chan struct{})
		w.target.set(func() { w.target.hold = hold })
		w.volume("w", "tree of w")
		w.backup("v", nil)
		w.backup("w", func(s *v1.BackupSpec) { s.VolumeID = "w" })
		w.want("v", v1.JobRunning)
		w.want("w", v1.JobRunning)
		close(hold)
		states := map[v1.JobState]int{}
		for _, id := range []string{"v", "w"} {
			b, err := w.get(id)
			require.NoError(t, err)
			states[b.Status.State]++
		}
		require.Equal(t, map[v1.JobState]int{v1.JobCompleted: 1, v1.JobFailed: 1}, states)
		require.Equal(t, 1, w.target.leftover())
	})
}

// TestDiskFull: what is written on a full disk fails, and leaves nothing.
func TestDiskFull(t *testing.T) {
	live(t, func(w *world) {
		w.mu.Lock()
		w.full = v1.ErrDiskFull
		w.mu.Unlock()
		w.backup("a", nil)
		require.Equal(t, v1.ErrDiskFull.Message, w.want("a", v1.JobFailed).Status.Message)
		require.Zero(t, w.target.leftover())
	})
}

// TestTargetLosesBytes: a target that does not have all that was written is a failure.
func TestTargetLosesBytes(t *testing.T) {
	live(t, func(w *world) {
		w.target.set(func() { w.target.lost = 1 })
		w.backup("a", nil)
		require.Equal(t, "the target stored 8 of 9 bytes", w.want("a", v1.JobFailed).Status.Message)
		require.Zero(t, w.target.leftover())
	})
}

// TestLeftoverTakesSpace: what could not be removed counts until it is.
func TestLeftoverTakesSpace(t *testing.T) {
	live(t, func(w *world) {
		w.setLimits(func(c *v1.BackupsConfig) { c.MaxSize = 12 })
		w.target.set(func() { w.target.put, w.target.delete = errRefused, errRefused })
		w.backup("a", nil)
		w.want("a", v1.JobFailed)
		w.target.set(func() { w.target.put = nil })
		w.backup("b", nil)
		require.Contains(t, w.want("b", v1.JobFailed).Status.Message, "backups.max_size")
		w.target.set(func() { w.target.delete = nil })
		time.Sleep(10 * time.Minute)
		w.backup("c", nil)
		w.want("c", v1.JobCompleted)
	})
}

// TestPolicyRespectsLimits: the message of a policy that may make no backup is the reason, and it goes on later.
func TestPolicyRespectsLimits(t *testing.T) {
	for key, limit := range map[string]func(*v1.BackupsConfig){
		"backups.max_per_volume": func(c *v1.BackupsConfig) { c.MaxPerVolume = 2 },
		"backups.max_size":       func(c *v1.BackupsConfig) { c.MaxSize = 18 },
	} {
		live(t, func(w *world) {
			w.backup("a", nil)
			w.backup("b", nil)
			w.want("b", v1.JobCompleted)
			w.setLimits(limit)
			w.policy(v1.PolicySpec{Every: v1.Duration(time.Hour), Keep: 1, Target: v1.TargetLocal})
			time.Sleep(3 * time.Hour)
			require.Empty(t, w.states())
			require.Contains(t, w.message(), key)
			w.update(func(tx *store.Tx) error { return store.Backups.Delete(tx, "a") })
			time.Sleep(time.Hour)
			require.Equal(t, map[v1.JobState]int{v1.JobCompleted: 1}, w.states())
			require.Empty(t, w.message())
		})
	}
}

// message returns that of the policy.
func (w *world) message() (text string) {
	w.t.Helper()
	p, err := store.Policies.Get(w.store.Read(), "v")
	text = p.Status.Message
	require.NoError(w.t, err)
	return text
}

// TestPolicyReadsInViews: a reconcile that changes nothing needs no update of the store.
func TestPolicyReadsInViews(t *testing.T) {
	live(t, func(w *world) {
		w.policy(v1.PolicySpec{Every: v1.Duration(time.Hour), Keep: 3, Target: v1.TargetLocal})
		time.Sleep(2 * time.Minute)
		x, err := planOf(w.store.Read(), "v")
		require.False(t, x.changes(), "%+v", x)
		require.NoError(t, err)
	})
}

// TestVolumeDeletedBeforeTheRecord: the job has completed, but the backup fails, because its
// volume was deleted meanwhile. It counts as failed, and takes space until its archive is gone.
func TestVolumeDeletedBeforeTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.setLimits(func(c *v1.BackupsConfig) { c.MaxSize = 12 })
		limits := func() v1.BackupsConfig { return w.limits }
		reg := prometheus.NewRegistry()
		o := Options{Store: w.store, Limits: limits, Free: func(v1.Target) error { return nil }, Jobs: NewJobs(func() int { return 1 }, slog.New(slog.DiscardHandler)), Metrics: Register(reg, w.store, limits),
			Log: slog.New(slog.DiscardHandler)}
		r := &backups{Options: o, space: newSpace(o)}
		w.backup("b", nil)
		b := w.want("b", "")
		require.NoError(t, r.space.wrote(b, 9))
		w.update(func(tx *store.Tx) error { return store.Volumes.Delete(tx, "v") })
		done := Job{State: jobs.Ended, Value: Report{Snapshot: v1.Snapshot{Size: 9}}}
		require.NoError(t, r.recordStep(b, RecordCompleted, Observed{Job: done}))
		require.True(t, w.want("b", v1.JobFailed).Status.Leftover)
		require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP berth_backup_bytes_total Bytes of the archives of completed backups.
# TYPE berth_backup_bytes_total counter
berth_backup_bytes_total{target="local"} 0
berth_backup_bytes_total{target="s3"} 0
# HELP berth_backups_total Backups that have ended.
# TYPE berth_backups_total counter
berth_backups_total{result="completed",target="local"} 0
berth_backups_total{result="completed",target="s3"} 0
berth_backups_total{result="failed",target="local"} 1
berth_backups_total{result="failed",target="s3"} 0
`), "berth_backup_bytes_total", "berth_backups_total"))
		require.Error(t, r.space.check(v1.TargetLocal, "", 9), "the archive is still there")
		r.space.release("b")
		require.NoError(t, r.space.check(v1.TargetLocal, "", 9))
	})
}
