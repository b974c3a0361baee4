package cli

import (
	"context"
	"fmt"

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
	b, err := poll(cmd.Context(), w, id, getBackup(d, id), func(b client.Backup) bool {
		p.total.Store(max(b.Progress.Total, b.Progress.Bytes))
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
	b, err := poll(cmd.Context(), w, backup, getBackup(d, backup), func(b client.Backup) bool {
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

// getBackup returns a function that gets a backup.
func getBackup(d *daemon, id string) func(context.Context) (client.Backup, error) {
	return func(ctx context.Context) (client.Backup, error) { return client.BackupsOf(d.Client).Get(ctx, id) }
}
