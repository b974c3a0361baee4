package transfer

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

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
			progress := func(stored, sent int64) {
				now := out
				now.read, now.arrived = now.read+stored+sent, now.arrived+stored
				notify(now)
			}
			if err := r.sendBackup(ctx, t, to, archive{b, a.Stored[b.BackupID], progress}); stays(err) {
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

// archive is the archive of a backup that is sent.
type archive struct {
	v1.ArrivalBackup
	stored   int64                    // bytes that the destination has
	progress func(stored, sent int64) // called with them, and with those that were sent since
}

// sendBackup sends the archive of a backup, in as many requests as it takes; one in S3 has none that is sent.
func (r *reconciler) sendBackup(ctx context.Context, t v1.Transfer, to Destination, a archive) error {
	if a.Spec.Target != v1.TargetLocal {
		return to.SendBackup(ctx, t.Meta.ID, a.BackupID, 0, strings.NewReader(""))
	}
	for {
		a.progress(a.stored, 0)
		body, more := &archiveWriter{archive: a, began: time.Now(), metrics: r.Metrics}, false
		err := r.stream(ctx, t, func(w io.Writer) error {
			body.w = w
			err := r.Archives.Send(ctx, a.ArrivalBackup, a.stored, body)
			if more = errors.Is(err, errMost); more {
				err = nil
			}
			return err
		}, func(content io.Reader) error { return to.SendBackup(ctx, t.Meta.ID, a.BackupID, a.stored, content) })
		if a.stored += body.written; err != nil || !more {
			return err
		}
	}
}

// errMost ends the sending of an archive after the time of a connection: the next request goes on.
var errMost = errors.New("the time is over")

// archiveWriter passes an archive on, for the time of a connection.
type archiveWriter struct {
	archive
	w       io.Writer
	written int64
	began   time.Time
	metrics *Metrics
}

// Write implements io.Writer.
func (a *archiveWriter) Write(p []byte) (n int, err error) {
	if a.written > 0 && time.Since(a.began) > connection {
		return 0, errMost
	}
	n, err = a.w.Write(p)
	a.written += int64(n)
	a.metrics.bytes(int64(n))
	a.progress(a.stored, a.written)
	return n, err
}
