package transfer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

func withBackups(r *v1.TransferRequest) { r.Backups = true }

// TestBackups: completed backups belong to the container at the destination from the commit on, as they were; those that cannot go
// are named and stay. What went is removed here with the volume, and no archive in S3 is deleted.
func TestBackups(t *testing.T) {
	live(t, func(w *world) {
		first, inBucket := w.backup(v1.TargetLocal, "first"), w.backup(v1.TargetS3, "in the bucket of both")
		w.there.bucket[v1.ArchiveKey(inBucket)] = int64(len("in the bucket of both"))
		second := w.backup(v1.TargetLocal, "second")
		elsewhere, missing, damaged := w.backup(v1.TargetS3, "in another bucket"), w.backup(v1.TargetLocal, "missing"), w.backup(v1.TargetLocal, "damaged")
		w.local.Map.Delete(v1.ArchiveKey(missing))
		w.local.Store(v1.ArchiveKey(damaged), "DAMAGED")
		failed := w.backup(v1.TargetLocal, "failed")
		require.NoError(t, w.here.Update(func(tx *store.Tx) error {
			return store.Backups.SetStatus(tx, failed, func(s *v1.BackupStatus) { s.State = v1.JobFailed })
		}))
		before, err := store.Backups.Get(w.here.Read(), first)
		require.NoError(t, err)

		w.move(withBackups)
		w.await(v1.TransferStopping)
		late := w.backup(v1.TargetLocal, "it was running, and nobody waits for its copy")
		w.there.set("commit", errCut)
		w.exited()
		w.await(v1.TransferHandingOver)
		require.Empty(t, w.backups(w.there.store), "they are not there before the commit")
		require.Equal(t, int64(1+len("first")+len("second")+len("missing")+len("damaged")), w.get().Status.Progress.Total)
		w.there.set("commit", nil)
		done := w.await(v1.TransferCompleted)

		moved, kept := []string{first, second, inBucket}, []string{elsewhere, missing, damaged, failed, late}
		slices.Sort(moved)
		slices.Sort(kept)
		require.Equal(t, moved, w.backups(w.there.store))
		require.Equal(t, moved, v1.ViewOfTransfer(done).Backups)
		require.Equal(t, kept, v1.ViewOfTransfer(done).BackupsKept)
		after, err := store.Backups.Get(w.there.store.Read(), first)
		require.NoError(t, err)
		require.True(t, before.Meta.CreatedAt.Equal(after.Meta.CreatedAt))
		before.Status.Seq, after.Status.Seq = 0, 0
		require.Equal(t, before.Status, after.Status)
		require.Equal(t, before.Spec.BackupRequest, after.Spec.BackupRequest)
		list := store.Backups.ListBy(w.there.store.Read(), w.volume)
		slices.SortFunc(list, v1.NewestFirst[v1.BackupSpec, v1.BackupStatus])
		require.Equal(t, []string{second, inBucket, first}, []string{list[0].Meta.ID, list[1].Meta.ID, list[2].Meta.ID})

		require.NotContains(t, w.backups(w.here), inBucket, "the destination owns the object")
		require.Contains(t, w.backups(w.here), first, "the local ones stay as long as the volume")
		require.NoError(t, w.here.Update(func(tx *store.Tx) error { return store.Containers.Purge(tx, "mc") }))
		time.Sleep(25 * time.Hour)
		for _, id := range w.backups(w.here) {
			b, err := store.Backups.Get(w.here.Read(), id)
			require.NoError(t, err)
			require.Equal(t, slices.Contains(moved, id), b.Meta.Deleted, id)
		}
		w.there.clean(t)
		require.Len(t, w.there.archives.keys(), 2)
	})
}

// TestNoBackups: without the request they stay, and the transfer does not list them.
func TestNoBackups(t *testing.T) {
	live(t, func(w *world) {
		id := w.backup(v1.TargetLocal, "first")
		w.move(nil)
		w.await(v1.TransferStopping)
		w.exited()
		v := v1.ViewOfTransfer(w.await(v1.TransferCompleted))
		require.Empty(t, append(v.Backups, v.BackupsKept...))
		require.Empty(t, append(w.there.archives.keys(), w.backups(w.there.store)...))
		time.Sleep(25 * time.Hour)
		b, err := store.Backups.Get(w.here.Read(), id)
		require.True(t, err == nil && !b.Meta.Deleted)
	})
}

// TestBackupsInterrupted: a cut or a kill goes on with the archive that was interrupted.
func TestBackupsInterrupted(t *testing.T) {
	for _, kill := range []bool{false, true} {
		live(t, func(w *world) {
			first := w.backup(v1.TargetLocal, "first")
			w.there.set("tree", errCut)
			w.move(withBackups)
			w.await(v1.TransferCopying)
			for len(w.there.archives.keys()) == 0 {
				time.Sleep(time.Second)
				synctest.Wait()
			}
			w.there.set("backup", errCut)
			second := w.backup(v1.TargetLocal, "second")
			time.Sleep(time.Minute)
			if kill {
				w.restart()
			}
			require.Contains(t, w.get().Status.Message, errCut.Error())
			w.there.set("backup", nil)
			w.there.set("tree", nil)
			w.await(v1.TransferStopping)
			w.exited()
			w.await(v1.TransferCompleted)
			require.Equal(t, []string{first, second}, w.there.sent)
			require.Len(t, w.backups(w.there.store), 2)
		})
	}
}

func (w *world) arrival() v1.Arrival {
	a, err := intent.FindArrival(w.there.store.Read(), transferID)
	require.NoError(w.t, err)
	return a
}

// TestBackupsOfEnded: when a transfer ends without a commit, nothing of its backups is at the destination, also of those that were
// deleted here meanwhile. The next transfer waits for that.
func TestBackupsOfEnded(t *testing.T) {
	for _, end := range []error{nil, errFull} {
		live(t, func(w *world) {
			gone, stays := w.backup(v1.TargetLocal, "gone"), w.backup(v1.TargetLocal, "stays")
			w.there.set("tree", errCut)
			w.move(withBackups)
			for len(w.there.archives.keys()) < 2 {
				time.Sleep(time.Second)
				synctest.Wait()
			}
			require.NoError(t, intent.DeleteBackup(w.here, gone))
			time.Sleep(10 * time.Minute)
			w.there.clean(t)
			require.Len(t, w.there.archives.keys(), 2, "the arrival has not ended")
			if end != nil {
				w.there.set("tree", end)
				w.stays(v1.TransferFailed, "The destination answers")
			} else {
				require.NoError(t, intent.CancelTransfer(w.here, transferID))
				w.stays(v1.TransferCancelled, "Cancelled")
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			require.Empty(t, w.backups(w.there.store))
			require.Contains(t, w.backups(w.here), stays)

			again := v1.ArrivalRequest{ArrivalID: intent.NewID(), Backups: w.arrival().Spec.Backups, Container: v1.ContainerSpec{InternalID: "mc", VolumeID: intent.NewID()}}
			_, err := w.there.Announce(context.Background(), again)
			require.ErrorIs(t, err, &v1.Error{Code: v1.Unavailable})
			w.there.clean(t)
			require.Empty(t, w.there.archives.keys())
			require.True(t, w.arrival().Status.Cleaned)
			_, err = w.there.Announce(context.Background(), again)
			require.NoError(t, err)
		})
	}
}

// TestBackupsInHandOver: until the destination has answered the commit, backups that it may own can neither be deleted nor
// restored at the source.
func TestBackupsInHandOver(t *testing.T) {
	live(t, func(w *world) {
		id := w.backup(v1.TargetLocal, "first")
		w.there.set("commit", errCut)
		w.move(withBackups)
		w.await(v1.TransferStopping)
		w.exited()
		w.await(v1.TransferHandingOver)
		other, err := intent.CreateVolume(w.here, v1.VolumeSpec{})
		require.NoError(t, err)
		restore := func() error {
			return intent.RestoreBackup(w.here, intent.NewID(), v1.RestoreSpec{BackupID: id, RestoreRequest: v1.RestoreRequest{VolumeID: other}})
		}
		require.ErrorIs(t, intent.DeleteBackup(w.here, id), v1.ErrTransferring)
		require.ErrorIs(t, restore(), v1.ErrTransferring)
		require.NoError(t, intent.CancelTransfer(w.here, transferID))
		w.stays(v1.TransferCancelled, "Cancelled")
		require.NoError(t, restore())
	})
}

// TestRestoredBackupStays: a backup that a restore reads when the container is stopped does not go.
func TestRestoredBackupStays(t *testing.T) {
	live(t, func(w *world) {
		id := w.backup(v1.TargetLocal, "first")
		other, err := intent.CreateVolume(w.here, v1.VolumeSpec{})
		require.NoError(t, err)
		w.there.set("tree", errCut)
		w.move(withBackups)
		for len(w.there.archives.keys()) == 0 {
			time.Sleep(time.Second)
			synctest.Wait()
		}
		require.NoError(t, intent.RestoreBackup(w.here, intent.NewID(), v1.RestoreSpec{BackupID: id, RestoreRequest: v1.RestoreRequest{VolumeID: other}}))
		w.there.set("tree", nil)
		w.await(v1.TransferStopping)
		w.exited()
		w.await(v1.TransferCompleted)
		require.Equal(t, []string{id}, w.get().Status.BackupsKept)
		require.Empty(t, w.backups(w.there.store))
		w.there.clean(t)
		require.Empty(t, w.there.archives.keys())
	})
}

// TestArchiveInParts: an archive arrives although each connection carries a part of it, because it is cut or its time is over. Each
// request begins where the stored bytes end, and attempts are not given up while more arrives.
func TestArchiveInParts(t *testing.T) {
	live(t, func(w *world) {
		w.backup(v1.TargetLocal, strings.Repeat("0123456789", 100))
		w.there.carries = 9
		w.move(withBackups)
		w.await(v1.TransferStopping)
		w.exited()
		w.await(v1.TransferCompleted)
		require.Len(t, w.there.requests, 1000/9+1)
		for i, offset := range w.there.requests {
			require.EqualValues(t, i*9, offset)
		}
	})
	live(t, func(w *world) {
		w.backup(v1.TargetLocal, "slow")
		w.move(withBackups)
		w.await(v1.TransferStopping)
		w.exited()
		require.Empty(t, w.await(v1.TransferCompleted).Status.BackupsKept)
		require.Equal(t, []int64{0, 1, 2, 3}, w.there.requests)
	})
}

// TestUnreadableArchive: an archive that cannot be read names the source.
func TestUnreadableArchive(t *testing.T) {
	live(t, func(w *world) {
		w.backup(v1.TargetLocal, "failing")
		failing := errors.New("input/output error")
		w.local.failing.Store(&failing)
		w.move(withBackups)
		w.await(v1.TransferCopying)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, "The source: input/output error", w.get().Status.Message)
		require.Equal(t, v1.TransferCopying, v1.TransferStateOf(w.get()))
		w.local.failing.Store(nil)
		w.await(v1.TransferStopping)
	})
}
