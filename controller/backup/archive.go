package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
)

// Target keeps archives under keys. See package blob.
type Target interface {
	Put(ctx context.Context, key string, write func(ctx context.Context, w io.Writer) error) (size int64, err error)
	Open(ctx context.Context, key string, offset int64) (content io.ReadCloser, size int64, err error)
	Delete(ctx context.Context, key string) error
	Abort(ctx context.Context, key string) error
}

// Archives writes volumes to archives and restores them.
type Archives interface {
	Snapshot(ctx context.Context, volume string, w io.Writer, opt v1.SnapshotOptions) (v1.Snapshot, error)
	Fits(volume string, a v1.SnapshotArchive, opt v1.RestoreOptions) error
	// Restore leaves the volume as it was after an error. It returns an error of the code
	// v1.InvalidArchive if the archive differs from a.
	Restore(ctx context.Context, volume string, r io.Reader, a v1.SnapshotArchive, opt v1.RestoreOptions) error
}

// How long the removal may take of what a failed job left in its target, or a stopped one.
const (
	cleanTimeout        = 30 * time.Second
	stoppedCleanTimeout = 2 * time.Second
)

// write returns the work of a backup.
func (r *backups) write(b v1.Backup) work {
	return func(ctx context.Context, report func(Report)) error {
		t, err := r.Targets(b.Spec.Target)
		if err != nil {
			return err
		}
		key := v1.ArchiveKey(b.Meta.ID)
		report(Report{Leftover: true}) // of an attempt before this one, or of this one if it panics
		if b.Status.Attempts > 0 {
			if err := t.Delete(ctx, key); err != nil {
				return fmt.Errorf("remove the interrupted attempt: %w", err)
			}
		}
		if err := r.space.check(b.Spec.Target, b.Meta.ID, 1); err != nil {
			report(Report{})
			return err
		}
		var done v1.Snapshot
		err = r.quiesced(ctx, b, func() (err error) {
			done, err = r.store(ctx, t, b, func(bytes, total int64) {
				report(Report{Leftover: true, Progress: v1.Progress{Bytes: bytes, Total: max(bytes, total)}})
			})
			return err
		})
		if err == nil {
			report(Report{Snapshot: done})
			return nil
		}
		limit := cleanTimeout
		if ctx.Err() != nil { // berth ends, or the backup is deleted: the next attempt or the removal deletes the rest
			limit = stoppedCleanTimeout
		}
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		removeErr := t.Delete(clean, key)
		if removeErr == nil {
			r.space.release(b.Meta.ID)
			report(Report{})
		}
		return errors.Join(err, removeErr)
	}
}

// store writes the archive of a volume to its target.
func (r *backups) store(ctx context.Context, t Target, b v1.Backup, progress func(bytes, total int64)) (done v1.Snapshot, err error) {
	size, err := t.Put(ctx, v1.ArchiveKey(b.Meta.ID), func(ctx context.Context, w io.Writer) error {
		return controller.Catch(r.Log, "archive writer", func() (err error) {
			done, err = r.Archives.Snapshot(ctx, b.Spec.VolumeID, w, v1.SnapshotOptions{Ignore: b.Spec.Ignore, Progress: progress,
				Written: func(n int64) error {
					if err := r.space.wrote(b, n); err != nil {
						return err
					}
					return r.throttle.Wait(ctx, n)
				}})
			if err != nil {
				return err
			}
			return r.space.check(b.Spec.Target, b.Meta.ID, 0)
		}, "backup", b.Meta.ID, "volume", b.Spec.VolumeID)
	})
	if err == nil && size != done.Size {
		err = fmt.Errorf("the target stored %d of %d bytes", size, done.Size)
	}
	return done, err
}
