package transfer

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	v1 "berth/api/v1"
)

// sendBackups sends the archives of backups that have not arrived, and has the destination look for those in its bucket.
func (r *reconciler) sendBackups(ctx context.Context, t v1.Transfer, to Destination, notify func(report)) error {
	request, a, err := r.announced(ctx, t, to)
	if err != nil {
		return err
	}
	out := report{state: a.State}
	notify(out)
	if a.State != v1.ArrivalReceiving {
		return nil
	}
	for _, b := range request.Backups {
		var size int64
		if b.Spec.Target == v1.TargetLocal {
			size = b.Status.Size
		}
		if !slices.Contains(a.Backups, b.BackupID) {
			progress := func(n int64) {
				now := out
				now.read += n
				notify(now)
			}
			if err := r.sendBackup(ctx, t, to, b, progress); stays(err) {
				r.Log.Warn("a backup stays here", "transfer", t.Meta.ID, "backup", b.BackupID, "err", err)
				continue
			} else if err != nil {
				return err
			}
			out.sent += size
		}
		out.read, out.arrived = out.read+size, out.arrived+1+size
		out.backups = append(slices.Clip(out.backups), b.BackupID)
		notify(out)
	}
	return nil
}

// stays reports whether a backup cannot go with a transfer: there is no archive, it is not the one that was recorded, or it is in
// a bucket that the destination does not have. The transfer goes on without it.
func stays(err error) bool {
	return errors.Is(err, &v1.Error{Code: v1.BackupNotFound}) || errors.Is(err, &v1.Error{Code: v1.InvalidArchive})
}

// sendBackup sends the archive of a backup; one in S3 has none that is sent.
func (r *reconciler) sendBackup(ctx context.Context, t v1.Transfer, to Destination, b v1.ArrivalBackup, progress func(int64)) error {
	if b.Spec.Target != v1.TargetLocal {
		return to.SendBackup(ctx, t.Meta.ID, b.BackupID, strings.NewReader(""))
	}
	archive, _, err := r.Archives.Open(ctx, v1.ArchiveKey(b.BackupID), 0)
	if err != nil {
		return sourceError{err}
	}
	defer archive.Close()
	return to.SendBackup(ctx, t.Meta.ID, b.BackupID, r.throttled(ctx, t, &archiveReader{r: archive, metrics: r.Metrics, progress: progress}))
}

// archiveReader reads an archive of the source.
type archiveReader struct {
	r        io.Reader
	read     int64
	metrics  *Metrics
	progress func(read int64)
}

// Read implements io.Reader.
func (a *archiveReader) Read(p []byte) (n int, err error) {
	n, err = a.r.Read(p)
	a.read += int64(n)
	a.metrics.bytes(int64(n))
	a.progress(a.read)
	if err != nil && !errors.Is(err, io.EOF) {
		err = sourceError{err}
	}
	return n, err
}
