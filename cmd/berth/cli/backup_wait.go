package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

// waitBackup waits until a backup has ended, with its progress on a terminal, and
// prints it.
func waitBackup(cmd *cobra.Command, d *daemon, w *waiting, id string) error {
	p := newProgress(cmd.ErrOrStderr(), 0)
	defer p.close()
	b, err := pollBackup(cmd.Context(), d, w, id, func(b client.Backup) bool {
		p.total = max(b.Progress.Total, b.Progress.Bytes)
		p.bytes.Store(b.Progress.Bytes)
		name := string(b.State)
		p.name.Store(&name)
		return b.State.Finished()
	})
	p.close()
	if err != nil {
		return err
	}
	if b.State != v1.JobCompleted {
		return fmt.Errorf("%s: the backup failed: %s", id, b.Message)
	}
	return printDone(cmd, d.raw, id, "%s: completed, %s in %d files, %d skipped", id, units.BytesSize(float64(b.Size)), b.Files, b.SkippedTotal)
}

// waitRestore waits until a restore has ended, and prints its backup.
func waitRestore(cmd *cobra.Command, d *daemon, w *waiting, backup, id string) error {
	find := func(b client.Backup) (found client.Restore) {
		for _, r := range b.Restores {
			if r.RestoreID == id {
				found = r
			}
		}
		return found
	}
	p := newProgress(cmd.ErrOrStderr(), -1)
	defer p.close()
	b, err := pollBackup(cmd.Context(), d, w, backup, func(b client.Backup) bool {
		name := string(find(b).State)
		p.name.Store(&name)
		return name == "" || find(b).State.Finished()
	})
	p.close()
	if err != nil {
		return err
	}
	switch r := find(b); {
	case r.RestoreID == "":
		return fmt.Errorf("restore %s: its record was removed; list the restores of backup %s", id, backup)
	case r.State != v1.JobCompleted:
		return fmt.Errorf("%s: the restore failed, and the volume is as it was: %s", id, r.Message)
	}
	return printDone(cmd, d.raw, id, "%s: completed", id)
}

// pollBackup gets a backup again and again until done returns true.
func pollBackup(ctx context.Context, d *daemon, w *waiting, id string, done func(client.Backup) bool) (client.Backup, error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	tick := time.NewTicker(waitInterval)
	defer tick.Stop()
	for {
		b, err := client.BackupsOf(d.Client).Get(ctx, id)
		if err == nil && done(b) {
			return b, nil
		}
		if err != nil && ctx.Err() == nil && !transient(err) {
			return b, fmt.Errorf("%s: %w", id, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return b, withCode(exitTimeout, fmt.Errorf("%s has not ended within %s; it goes on", id, w.timeout))
			}
			return b, ctx.Err()
		}
	}
}
