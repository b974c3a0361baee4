package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

func newBackupCommand(c *connector) *cobra.Command {
	return withSubcommands(&cobra.Command{
		Use:   "backup",
		Short: "Create, list, restore, download and delete backups of volumes",
		Example: "  berth backup create survival --wait\n  berth backup list survival\n" +
			"  berth backup restore <backup> --stop --wait\n  berth backup policy set survival --every 6h --keep 8",
	}, newBackupCreate(c), newBackupList(c), newBackupRestore(c), newBackupDelete(c), newBackupDownload(c), newBackupPolicy(c))
}

// backupFlags are the flags of what a backup holds.
type backupFlags struct {
	target  string
	ignore  []string
	quiesce v1.Quiesce
	timeout time.Duration
}

func addBackupFlags(cmd *cobra.Command) *backupFlags {
	f := new(backupFlags)
	cmd.Flags().StringVar(&f.target, "target", "", "where the archive is stored: local or s3 (default local)")
	cmd.Flags().StringArrayVar(&f.ignore, "ignore", nil, "pattern of paths to leave out, as in .gitignore; can be repeated")
	cmd.Flags().StringVar(&f.quiesce.Container, "quiesce", "", "container that gets the commands of --before and --after")
	cmd.Flags().StringVar(&f.quiesce.Before, "before", "", "console commands before the volume is read, one in each line, such as save-off")
	cmd.Flags().StringVar(&f.quiesce.WaitFor, "wait-for", "", "regular expression of a line to wait for after --before")
	cmd.Flags().StringVar(&f.quiesce.After, "after", "", "console command afterwards, such as save-on")
	cmd.Flags().DurationVar(&f.timeout, "quiesce-timeout", 0, "how long to wait for the line (default 30s)")
	complete(cmd, "target", func(*cobra.Command) []cobra.Completion {
		return []cobra.Completion{string(v1.TargetLocal), string(v1.TargetS3)}
	})
	return f
}

// request returns the part of a request that the flags give.
func (f *backupFlags) request() (client.BackupRequest, error) {
	r := client.BackupRequest{Target: v1.Target(f.target), Ignore: f.ignore}
	q := f.quiesce
	q.Timeout = v1.Duration(f.timeout)
	switch {
	case q.Container != "":
		r.Quiesce = &q
	case q != (v1.Quiesce{}):
		return r, withCode(exitUsage, errors.New("--before, --wait-for, --after and --quiesce-timeout need --quiesce"))
	}
	return r, nil
}

func newBackupCreate(c *connector) *cobra.Command {
	var name string
	var w *waiting
	var f *backupFlags
	cmd := c.command(&cobra.Command{
		Use:   "create <id>",
		Short: "Back up a volume and print the id of the backup",
		Long: "Back up a volume, or the volume of a container, and print the id of the backup. Containers may use the volume meanwhile. The command returns when\n" +
			"the request is stored; with --wait when the backup has ended.",
		Example: "  berth backup create 3f2a91c0 --name 'before the update' --ignore '*.log' --wait\n" +
			"  berth backup create 3f2a91c0 --quiesce mc --before $'save-off\\nsave-all flush' --wait-for 'Saved the game' --after save-on",
		Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		r, err := f.request()
		if err != nil {
			return err
		}
		r.Name = name
		volume, err := volumeOf(cmd.Context(), d, args[0])
		if err != nil {
			return err
		}
		id, err := client.BackupsOf(d.Client).Create(cmd.Context(), volume, r)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		if w.enabled {
			return waitBackup(cmd, d, w, id)
		}
		return printDone(cmd, d.raw, id, "%s", id)
	})
	cmd.Flags().StringVar(&name, "name", "", "name for people, at most 128 characters")
	f, w = addBackupFlags(cmd), addWaitFlags(cmd)
	return cmd
}

func newBackupList(c *connector) *cobra.Command {
	return c.listCommand(&cobra.Command{
		Use:     "list [id]",
		Aliases: []string{"ls"},
		Short:   "List backups, the newest first: all, or those of a volume or a container's volume",
		Example: "  berth backup list\n  berth backup list 3f2a91c0 -o json",
		Args:    cobra.MaximumNArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) (listing, error) {
		volume := ""
		if len(args) > 0 {
			var err error
			if volume, err = volumeOf(cmd.Context(), d, args[0]); err != nil {
				return listing{}, err
			}
		}
		list, err := client.BackupsOf(d.Client).List(cmd.Context(), volume)
		if err != nil {
			return listing{}, err
		}
		l := listing{raw: d.raw, names: names(list, func(b client.Backup) string { return b.BackupID })}
		l.fill = func(t *table) { tableOfBackups(t, list) }
		return l, nil
	})
}

func tableOfBackups(t *table, list []client.Backup) {
	t.head(column{title: "BACKUP"}, column{title: "VOLUME"}, column{title: "NAME"}, column{title: "STATE"}, column{title: "SIZE"}, column{title: "CREATED"},
		column{title: "TARGET"}, column{title: "POLICY", wide: true}, column{title: "SKIPPED", wide: true}, column{title: "CHECKSUM", wide: true}, column{title: "MESSAGE"})
	for _, b := range list {
		state := string(b.State)
		if b.State == v1.JobRunning && b.Progress.Total > 0 {
			state = fmt.Sprintf("running %d%%", 100*b.Progress.Bytes/max(b.Progress.Total, b.Progress.Bytes))
		}
		t.row(b.BackupID, b.VolumeID[:min(8, len(b.VolumeID))], b.Name, state, units.BytesSize(float64(b.Size)),
			date(time.Unix(b.CreatedAt, 0)), string(b.Target), fmt.Sprint(b.Policy), fmt.Sprint(b.SkippedTotal), b.Checksum, b.Message)
	}
}

// backupRemedy returns what to do about the error of a request for a backup, or "".
func backupRemedy(err error) string {
	if errors.Is(err, v1.ErrBackupNotFound) {
		return "; berth backup list shows the ids of backups"
	}
	return ""
}

func newBackupRestore(c *connector) *cobra.Command {
	var w *waiting
	var r client.RestoreRequest
	cmd := c.command(&cobra.Command{
		Use:   "restore <backup>",
		Short: "Restore a backup into its volume, or into another one",
		Long: "Restore a backup. Its content replaces that of the volume in one step; if anything fails, the volume stays as it was.\n" +
			"With --stop, containers that use the volume are stopped meanwhile and start again afterwards.",
		Example: "  berth backup restore b1e9c2d4-5f6a-4b7c-8d9e-0a1b2c3d4e5f --stop --wait",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		if r.VolumeID != "" {
			var err error
			if r.VolumeID, err = volumeOf(cmd.Context(), d, r.VolumeID); err != nil {
				return err
			}
		}
		id, err := client.BackupsOf(d.Client).Restore(cmd.Context(), args[0], r)
		if err != nil {
			return fmt.Errorf("%s: %w%s", args[0], err, backupRemedy(err))
		}
		if w.enabled {
			return waitRestore(cmd, d, w, args[0], id)
		}
		return printDone(cmd, d.raw, id, "%s", id)
	})
	cmd.Flags().StringVar(&r.VolumeID, "volume", "", "id of the volume to restore into, or of a container that uses it (default that of the backup)")
	cmd.Flags().StringVar(&r.Mode, "mode", "", "replace, or merge: keep what the backup lacks (default replace)")
	cmd.Flags().BoolVar(&r.Stop, "stop", false, "stop the containers that use the volume, and start them again afterwards")
	complete(cmd, "mode", func(*cobra.Command) []cobra.Completion {
		return []cobra.Completion{v1.RestoreReplace, v1.RestoreMerge}
	})
	w = addWaitFlags(cmd)
	return cmd
}

func newBackupDelete(c *connector) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "delete <backup>...",
		Aliases: []string{"rm"},
		Short:   "Delete backups; one that runs is cancelled",
		Example: "  berth backup delete b1e9c2d4-5f6a-4b7c-8d9e-0a1b2c3d4e5f",
		Args:    cobra.MinimumNArgs(1),
	}, func(cmd *cobra.Command, d *daemon, ids []string) error {
		return each(cmd.Context(), d, ids, func(id string) error {
			if err := client.BackupsOf(d.Client).Delete(cmd.Context(), id); err != nil {
				return fmt.Errorf("%s: %w%s", id, err, backupRemedy(err))
			}
			return printDone(cmd, d.raw, id, "%s: deletion started", id)
		})
	})
}

// waitBackup waits until a backup has ended, and prints it.
func waitBackup(cmd *cobra.Command, d *daemon, w *waiting, id string) error {
	return w.await(cmd, d, w.job(id, func(ctx context.Context) (string, bool, error) {
		b, err := client.BackupsOf(d.Client).Get(ctx, id)
		switch {
		case err != nil || !b.State.Finished():
			return string(b.State), false, err
		case b.State != v1.JobCompleted:
			return "", true, fmt.Errorf("%s: the backup failed: %s", id, b.Message)
		}
		return "", true, printDone(cmd, d.raw, id, "%s: completed, %s in %d files, %d skipped", id, units.BytesSize(float64(b.Size)), b.Files, b.SkippedTotal)
	}))
}

// waitRestore waits until a restore has ended, and prints its backup.
func waitRestore(cmd *cobra.Command, d *daemon, w *waiting, backup, id string) error {
	return w.await(cmd, d, w.job(id, func(ctx context.Context) (string, bool, error) {
		b, err := client.BackupsOf(d.Client).Get(ctx, backup)
		i := slices.IndexFunc(b.Restores, func(r client.Restore) bool { return r.RestoreID == id })
		switch {
		case err != nil:
			return "", false, err
		case i < 0:
			return "", true, fmt.Errorf("restore %s: its record was removed; list the restores of backup %s", id, backup)
		}
		switch r := b.Restores[i]; {
		case !r.State.Finished():
			return string(r.State), false, nil
		case r.State != v1.JobCompleted:
			return "", true, fmt.Errorf("%s: the restore failed, and the volume is as it was: %s", id, r.Message)
		}
		return "", true, printDone(cmd, d.raw, id, "%s: completed", id)
	}))
}

// job returns the task of a backup or a restore, which goes on after the timeout.
func (w *waiting) job(id string, ask func(context.Context) (string, bool, error)) *task {
	return &task{id: id, ask: ask, late: func() error {
		return withCode(exitTimeout, fmt.Errorf("%s has not ended within %s; it goes on", id, w.timeout))
	}}
}
