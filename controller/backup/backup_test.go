package backup

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/store"
)

func TestBackupAndRestore(t *testing.T) {
	live(t, func(w *world) {
		w.backup("b", nil)
		b := w.want("b", v1.JobCompleted)
		require.EqualValues(t, 9, b.Status.Size)
		require.EqualValues(t, 9, b.Status.Unpacked)
		require.Equal(t, fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("tree of v"))), b.Status.Checksum)
		require.Equal(t, v1.Progress{Bytes: 9, Total: 9}, b.Status.Progress)
		require.Len(t, b.Status.Skipped, 1)
		require.Equal(t, []string{"pending", "running", "completed"}, w.events("b"))

		w.trees.set("v", "changed")
		w.restore("r", "b", "v")
		w.restored("r", v1.JobCompleted)
		require.Equal(t, "tree of v", w.trees.get("v"))
		require.Equal(t, []string{"pending", "running", "completed"}, w.events("r"))
		require.Empty(t, w.restoring("v"))

		w.update(func(tx *store.Tx) error { return store.Backups.Delete(tx, "b") })
		_, err := w.get("b")
		require.ErrorIs(t, err, store.ErrNotFound)
		require.Zero(t, w.target.leftover())
		require.Equal(t, []string{"pending", "running", "completed", "deleting"}, w.events("b"))
		require.Empty(t, store.Restores.IDs(w.store.Read()), "they go with their backup")
	})
}

func (w *world) restoring(volume string) (id string) {
	w.t.Helper()
	id = store.Restoring(w.store.Read(), volume)
	return id
}

func TestFailedBackupLeavesNothing(t *testing.T) {
	live(t, func(w *world) {
		w.target.set(func() { w.target.put = errors.New("write /srv/backups/x: access denied") })
		w.backup("b", nil)
		b := w.want("b", v1.JobFailed)
		require.Contains(t, b.Status.Message, "access denied")
		require.NotContains(t, b.Status.Message, "/srv")
		require.Empty(t, b.Status.Checksum)
		require.Zero(t, w.target.leftover())

		w.target.set(func() { w.target.delete = errors.New("unreachable") })
		w.backup("c", nil)
		require.True(t, w.want("c", v1.JobFailed).Status.Leftover)
		require.NotZero(t, w.target.leftover())
		w.target.set(func() { w.target.delete = nil })
		time.Sleep(2 * time.Minute)
		require.False(t, w.want("c", v1.JobFailed).Status.Leftover)
		require.Zero(t, w.target.leftover())
	})
}

// TestArchivePanics: a tree on which the writer of archives panics fails its backup only.
func TestArchivePanics(t *testing.T) {
	live(t, func(w *world) {
		w.trees.broken = true
		w.backup("b", nil)
		require.Contains(t, w.want("b", v1.JobFailed).Status.Message, "panic")
		w.trees.broken = false
		w.backup("c", nil)
		w.want("c", v1.JobCompleted)
	})
}

// TestInterruptedBackup: it begins again from the start, and fails after three attempts.
func TestInterruptedBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		hold := make(chan struct{})
		w.target.set(func() { w.target.hold = hold })
		stop := w.run()
		w.backup("b", nil)
		for attempt := 1; attempt <= 2; attempt++ {
			require.Equal(t, attempt, w.want("b", v1.JobRunning).Status.Attempts)
			stop()
			require.Equal(t, v1.JobRunning, w.want("b", v1.JobRunning).Status.State)
			stop = w.run()
		}
		close(hold)
		require.Equal(t, 3, w.want("b", v1.JobCompleted).Status.Attempts)

		w.target.set(func() { w.target.hold = make(chan struct{}) })
		w.backup("c", nil)
		for range 3 {
			w.want("c", v1.JobRunning)
			stop()
			stop = w.run()
		}
		require.Contains(t, w.want("c", v1.JobFailed).Status.Message, "interrupted 3 times")
		require.Len(t, w.target.stored, 1)
		require.Zero(t, len(w.target.parts), "its part is removed")
		stop()
	})
}

func TestDeletionCancelsBackup(t *testing.T) {
	live(t, func(w *world) {
		w.target.set(func() { w.target.hold = make(chan struct{}) })
		w.backup("b", nil)
		w.volume("w", "another")
		w.backup("waits", func(s *v1.BackupSpec) { s.VolumeID = "w" })
		w.want("b", v1.JobRunning)
		w.want("waits", v1.JobPending)
		for _, id := range []string{"waits", "b"} {
			w.update(func(tx *store.Tx) error { return store.Backups.Delete(tx, id) })
			_, err := w.get(id)
			require.ErrorIs(t, err, store.ErrNotFound)
		}
		require.Zero(t, w.target.leftover())
	})
}

// TestDeletionWaitsForTarget: the record stays until the bytes are gone.
func TestDeletionWaitsForTarget(t *testing.T) {
	live(t, func(w *world) {
		w.backup("b", nil)
		w.want("b", v1.JobCompleted)
		w.target.set(func() { w.target.delete = errors.New("unreachable") })
		w.update(func(tx *store.Tx) error { return store.Backups.Delete(tx, "b") })
		time.Sleep(time.Hour)
		w.want("b", v1.JobDeleting)
		w.target.set(func() {
			require.Less(t, w.target.deletes, 100, "attempts in an hour: they are made more and more seldom")
			w.target.delete = nil
		})
		time.Sleep(6 * time.Minute)
		_, err := w.get("b")
		require.ErrorIs(t, err, store.ErrNotFound)
		require.Zero(t, w.target.leftover())
	})
}

func TestVolumeDeletedDuringBackup(t *testing.T) {
	live(t, func(w *world) {
		w.target.set(func() { w.target.hold = make(chan struct{}) })
		w.backup("b", nil)
		w.update(func(tx *store.Tx) error { return store.Volumes.Delete(tx, "v") })
		time.Sleep(2 * progressPeriod)
		require.Contains(t, w.want("b", v1.JobFailed).Status.Message, "volume was deleted")
		require.Zero(t, w.target.leftover())
	})
}

// TestJobsAtOnce: concurrency bounds all jobs, a volume has one, and restores come first.
func TestJobsAtOnce(t *testing.T) {
	live(t, func(w *world) {
		w.backup("first", nil)
		w.want("first", v1.JobCompleted)
		w.limit = 2
		hold := make(chan struct{})
		w.target.set(func() { w.target.hold = hold })
		w.volume("w", "w")
		w.volume("x", "x")
		for i, volume := range []string{"v", "v", "w", "x"} {
			w.backup("b"+strconv.Itoa(i), func(s *v1.BackupSpec) { s.VolumeID = volume })
			time.Sleep(time.Second)
		}
		w.want("b0", v1.JobRunning)
		w.want("b1", v1.JobPending)
		w.want("b2", v1.JobRunning)
		w.want("b3", v1.JobPending)
		w.volume("y", "old")
		w.restore("r", "first", "y")
		w.restored("r", v1.JobPending)
		hold <- struct{}{} // one of the two that run ends: its place is the restore's
		w.restored("r", v1.JobCompleted)
		close(hold)
		for i := range 4 {
			w.want("b"+strconv.Itoa(i), v1.JobCompleted)
		}
	})
}

// TestSkippedEntriesAreStored: the status has the first ones only, and stays small.
func TestSkippedEntriesAreStored(t *testing.T) {
	live(t, func(w *world) {
		for i := range 2 * v1.MaxSkipped {
			w.trees.skipped = append(w.trees.skipped, v1.Skipped{Path: fmt.Sprintf("%0250d", i), Reason: v1.SkippedSpecial})
		}
		w.backup("b", nil)
		b := w.want("b", v1.JobCompleted)
		require.Equal(t, w.trees.skipped[:9], b.Status.Skipped)
		record, err := json.Marshal(b.Status)
		require.NoError(t, err)
		require.Less(t, len(record), 4<<10, "bytes that a list decodes")
		{
			all, err := store.SkippedOf(w.store.Read(), b)
			require.Equal(t, w.trees.skipped[:v1.MaxSkipped], all)
			require.NoError(t, err)
		}
	})
}

// TestDeadTargetDelaysNoOther: deletions from a target that does not answer leave the
// permits of the other one.
func TestDeadTargetDelaysNoOther(t *testing.T) {
	live(t, func(w *world) {
		dead := make(chan struct{})
		w.s3 = &target{stored: map[string][]byte{}, parts: map[string]bool{}}
		var ids []string
		for i := range 3 * maxRemovals {
			ids = append(ids, "s3-"+strconv.Itoa(i))
			w.backup(ids[i], func(s *v1.BackupSpec) { s.Target = v1.TargetS3 })
			w.want(ids[i], v1.JobCompleted)
		}
		w.backup("local", nil)
		w.want("local", v1.JobCompleted)
		w.s3.set(func() { w.s3.dead = dead })
		for _, id := range append(ids, "local") {
			w.update(func(tx *store.Tx) error { return store.Backups.Delete(tx, id) })
		}
		_, err := w.get("local")
		require.ErrorIs(t, err, store.ErrNotFound)
		close(dead)
		for _, id := range ids {
			_, err := w.get(id)
			require.ErrorIs(t, err, store.ErrNotFound)
		}
	})
}
