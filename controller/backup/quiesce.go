package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

// Console reaches the consoles of servers.
type Console interface {
	// Running reports whether the server of a container runs, as the engine reports it.
	Running(ctx context.Context, container string) (bool, error)
	// Send sends a line to the standard input of a server. It may fail for a moment after
	// the server, or berth, has started.
	Send(ctx context.Context, container, command string) error
	// Await returns nil when a line that was printed since then matches the pattern.
	Await(ctx context.Context, container, pattern string, since time.Time) error
}

const (
	sendTimeout = 5 * time.Second        // for one command
	sendRetries = 20                     // of a command whose console is not ready
	sendDelay   = 250 * time.Millisecond // between two
	quietKeeps  = 5 * time.Second        // that a job keeps its permit until the container rests: few servers need longer
)

// quiesced calls do between the two commands of a backup. The second one is sent
// whatever happens: that it is due is recorded before the first one is sent.
func (r *backups) quiesced(ctx context.Context, b v1.Backup, do func() error) error {
	q := b.Spec.Quiesce
	if q == nil {
		return do()
	}
	ended, err := r.makerEnded(b)
	if err != nil {
		return err
	}
	if ended != "" {
		return v1.Errorf(v1.Unavailable, "quiesce: %s", ended)
	}
	accepts, err := r.acceptsCommands(ctx, b)
	if err != nil {
		return err
	}
	if !accepts {
		return do()
	}
	if err := r.setResumeDue(b, true); err != nil {
		return err
	}
	err = r.Jobs.archives.Lend(ctx, quietKeeps, func() error { return r.quiet(ctx, q) })
	if err == nil {
		err = do()
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()
	if resumeErr := r.resume(after, b); resumeErr != nil { // the reconciler tries again
		r.Log.Warn("the resume command of a backup was not sent yet", "backup", b.Meta.ID, "container", q.Container, "err", resumeErr)
	}
	return err
}

// ended returns why the rights of a maker have ended; empty: they have not.
func (o Options) ended(tx *store.Tx, m v1.Maker, q *v1.Quiesce, volume string) (reason string, err error) {
	if m.TokenID != "" {
		err := o.Maker(tx, m.TokenID, volume)
		if errors.Is(err, store.ErrFailed) {
			return "", err
		}
		if err != nil {
			return "the token that requested it is no longer valid for this volume", nil
		}
	}
	if m.UID == "" || q == nil {
		return "", nil
	}
	c, err := store.Containers.Get(tx, q.Container)
	if err == nil && c.Meta.UID != m.UID {
		err = store.ErrNotFound
	}
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Sprintf("the container %s that it named is deleted", q.Container), nil
	}
	return "", err
}

// makerEnded returns why the rights of the maker of a backup have ended: it may have waited long.
func (r *backups) makerEnded(b v1.Backup) (reason string, err error) {
	return r.ended(r.Store.Read(), b.Spec.Maker, b.Spec.Quiesce, b.Spec.VolumeID)
}

// acceptsCommands reports whether the container of a backup's quiesce runs and uses the
// volume. Since the request it may have been changed, or deleted and its id used for
// another one, into whose console nobody may type.
func (r *backups) acceptsCommands(ctx context.Context, b v1.Backup) (bool, error) {
	id := b.Spec.Quiesce.Container
	c, err := store.Containers.Get(r.Store.Read(), id)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	same := b.Spec.Maker.UID == "" || b.Spec.Maker.UID == c.Meta.UID
	if err != nil || !same || c.Meta.Deleted || c.Spec.VolumeID != b.Spec.VolumeID {
		return false, err
	}
	running, err := r.Console.Running(ctx, id)
	if err != nil {
		return false, fmt.Errorf("container %s: %w", id, err)
	}
	return running, nil
}

// quiet sends the first command and waits for its line.
func (r *backups) quiet(ctx context.Context, q *v1.Quiesce) error {
	since := time.Now()
	if q.Before != "" {
		if err := r.send(ctx, q.Container, q.Before); err != nil {
			return v1.Errorf(v1.Unavailable, "quiesce.before: the command could not be sent to container %s", q.Container)
		}
	}
	if q.WaitFor == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(q.Timeout))
	defer cancel()
	err := r.Console.Await(ctx, q.Container, q.WaitFor, since)
	if errors.Is(err, context.DeadlineExceeded) {
		return v1.Errorf(v1.Unavailable, "quiesce.wait_for: no line of container %s matched within %s", q.Container, q.Timeout)
	}
	return err
}

// send sends a command. It tries again while the console is not ready.
func (r *backups) send(ctx context.Context, container, command string) (err error) {
	for range sendRetries {
		if err = r.sendOnce(ctx, container, command); err == nil || !controller.Sleep(ctx, sendDelay) {
			return err
		}
	}
	return err
}

func (r *backups) sendOnce(ctx context.Context, container, command string) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	return r.Console.Send(ctx, container, command)
}

// resume sends the second command, unless the container does not run, and records that.
func (r *backups) resume(ctx context.Context, b v1.Backup) error {
	q := b.Spec.Quiesce
	accepts, err := r.acceptsCommands(ctx, b)
	if err != nil {
		return err
	}
	if accepts && q.After != "" {
		if err := r.sendOnce(ctx, q.Container, q.After); err != nil {
			return fmt.Errorf("container %s: send quiesce.after: %w", q.Container, err)
		}
	}
	return r.setResumeDue(b, false)
}

func (r *backups) setResumeDue(b v1.Backup, due bool) error {
	return record(r.Store, b, func(_ *store.Tx, s *v1.BackupStatus, _ time.Time) error { s.ResumeDue = due; return nil })
}
