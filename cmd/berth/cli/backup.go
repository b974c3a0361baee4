package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "berth/api/v1"
)

func newBackupCommand(c *connector) *cobra.Command {
	return withSubcommands(&cobra.Command{
		Use:   "backup",
		Short: "Create, list, restore, download and delete backups of volumes",
		Example: "  berth backup create survival --wait\n  berth backup list survival\n" +
			"  berth backup restore <backup> --stop --wait\n  berth backup policy set survival --every 6h --keep 8",
	}, newBackupCreate(c), newBackupList(c), newBackupFiles(c), newBackupRestore(c), newBackupDelete(c), newBackupDownload(c),
		newBackupPolicy(c))
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
func (f *backupFlags) request() (v1.BackupRequest, error) {
	r := v1.BackupRequest{Target: v1.Target(f.target), Ignore: f.ignore}
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
		Long: "Back up a volume, or the volume of a container, and print the id of the backup. Containers may use the volume meanwhile.\n" +
			"The command returns when the request is stored; with --wait when the backup has ended.",
		Example: "  berth backup create 3f2a91c0 --name 'before the update' --ignore '*.log' --wait\n" +
			"  berth backup create 3f2a91c0 --quiesce mc --before $'save-off\\nsave-all flush' --wait-for 'Saved the game' --after save-on",
		Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		r, err := f.request()
		if err != nil {
			return err
		}
		r.Name = name
		volume, err := d.volumeOf(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		id, err := d.Backups().Create(cmd.Context(), volume, r)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		if w.enabled {
			return w.backup(cmd, d, id)
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
			if volume, err = d.volumeOf(cmd.Context(), args[0]); err != nil {
				return listing{}, err
			}
		}
		list, err := d.Backups().List(cmd.Context(), volume)
		return listOf(d, list, func(b v1.BackupView) string { return b.BackupID }, []string{"BACKUP", "VOLUME", "NAME", "STATE", "SIZE",
			"CREATED", "TARGET", "POLICY*", "SKIPPED*", "CHECKSUM*", "MESSAGE"}, backupRow).or("There are no backups."), err
	})
}

func backupRow(b v1.BackupView) []string {
	state := string(b.State)
	if b.State == v1.JobRunning && b.Progress.Total > 0 {
		state = fmt.Sprintf("running %d%%", 100*b.Progress.Bytes/max(b.Progress.Total, b.Progress.Bytes))
	}
	return []string{b.BackupID, b.VolumeID[:min(8, len(b.VolumeID))], b.Name, state, bytesText(orZero(b.Size)),
		date(time.Unix(b.CreatedAt, 0)), string(b.Target), fmt.Sprint(b.Policy), fmt.Sprint(b.SkippedTotal), string(b.Checksum), b.Message}
}

func newBackupFiles(c *connector) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "files <backup> [path]",
		Short:   "List a folder of a backup",
		Long:    "List a folder of a backup: folders first, then files and links. The daemon reads the archive, for at most a minute.",
		Example: "  berth backup files b1e9c2d4-5f6a-4b7c-8d9e-0a1b2c3d4e5f world",
		Args:    cobra.RangeArgs(1, 2),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		folder := ""
		if len(args) > 1 {
			folder = args[1]
		}
		list, err := d.Backups().Files(cmd.Context(), args[0], folder)
		if err != nil {
			return fmt.Errorf("%s: %w", strings.Join(args, " "), err)
		}
		return showFiles(cmd, d, list, func(e v1.FileEntry) string { return path.Join(folder, e.Name) })
	})
}

func newBackupRestore(c *connector) *cobra.Command {
	var w *waiting
	var r v1.RestoreRequest
	cmd := c.command(&cobra.Command{
		Use:   "restore <backup>",
		Short: "Restore a backup into its volume, or into another one",
		Long: "Restore a backup. Its content replaces that of the volume in one step; if anything fails, the volume stays as it was.\n" +
			"With --path only these files and folders are restored, and everything else stays.\n" +
			"With --stop, containers that use the volume are stopped meanwhile and start again afterwards.",
		Example: "  berth backup restore b1e9c2d4-5f6a-4b7c-8d9e-0a1b2c3d4e5f --stop --wait\n" +
			"  berth backup restore b1e9c2d4-5f6a-4b7c-8d9e-0a1b2c3d4e5f --path world/level.dat --path plugins --stop",
		Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		if r.VolumeID != "" {
			var err error
			if r.VolumeID, err = d.volumeOf(cmd.Context(), r.VolumeID); err != nil {
				return err
			}
		}
		id, err := d.Backups().Restore(cmd.Context(), args[0], r)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		if w.enabled {
			return w.restore(cmd, d, args[0], id)
		}
		return printDone(cmd, d.raw, id, "%s", id)
	})
	cmd.Flags().StringVar(&r.VolumeID, "volume", "",
		"id of the volume to restore into, or of a container that uses it (default that of the backup)")
	cmd.Flags().StringVar(&r.Mode, "mode", "", "replace, or merge: keep what the backup lacks (default replace, with --path merge)")
	cmd.Flags().StringArrayVar(&r.Paths, "path", nil, "restore only this file or folder of the backup; can be repeated")
	cmd.Flags().BoolVar(&r.Stop, "stop", false, "stop the containers that use the volume, and start them again afterwards")
	complete(cmd, "mode", func(*cobra.Command) []cobra.Completion {
		return []cobra.Completion{v1.RestoreReplace, v1.RestoreMerge}
	})
	w = addWaitFlags(cmd)
	return cmd
}

func newBackupDelete(c *connector) *cobra.Command {
	return c.deleteCommand(&cobra.Command{
		Use:     "delete <backup>...",
		Aliases: []string{"rm"},
		Short:   "Delete backups; one that runs is cancelled",
		Example: "  berth backup delete b1e9c2d4-5f6a-4b7c-8d9e-0a1b2c3d4e5f",
	}, "deletion started", func(ctx context.Context, d *daemon, id string) error {
		return d.Backups().Delete(ctx, id)
	})
}

// backup waits until a backup has ended, and prints it.
func (w *waiting) backup(cmd *cobra.Command, d *daemon, id string) error {
	return w.await(cmd, d, w.job(id, func(ctx context.Context) (string, bool, error) {
		b, err := d.Backups().Get(ctx, id)
		switch {
		case err != nil || !b.State.Finished():
			return string(b.State), false, err
		case b.State != v1.JobCompleted:
			return "", true, fmt.Errorf("%s: the backup failed: %s", id, b.Message)
		}
		return "", true, printCompleted(cmd, d.raw, id, fmt.Sprintf(", %s in %s, %d skipped", bytesText(orZero(b.Size)),
			count(int(orZero(b.Files)), "file"), b.SkippedTotal))
	}))
}

// restore waits until a restore has ended, and prints its backup.
func (w *waiting) restore(cmd *cobra.Command, d *daemon, backup, id string) error {
	return w.await(cmd, d, w.job(id, func(ctx context.Context) (string, bool, error) {
		b, err := d.Backups().Get(ctx, backup)
		i := slices.IndexFunc(b.Restores, func(r v1.RestoreView) bool { return r.RestoreID == id })
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
		return "", true, printCompleted(cmd, d.raw, id, "")
	}))
}

// printCompleted prints the id of a backup or a restore, as without --wait, and its end on standard error.
func printCompleted(cmd *cobra.Command, raw []byte, id, details string) error {
	_, err := fmt.Fprintf(cmd.ErrOrStderr(), "%s: completed%s\n", id, details)
	return errors.Join(err, printDone(cmd, raw, id, "%s", id))
}

// job returns the task of a backup or a restore, which goes on after the timeout.
func (w *waiting) job(id string, ask func(context.Context) (string, bool, error)) *task {
	return &task{id: id, ask: ask, late: func() error {
		return withCode(exitTimeout, fmt.Errorf("%s has not ended within %s; it goes on", id, w.timeout))
	}}
}

func newBackupPolicy(c *connector) *cobra.Command {
	return withSubcommands(&cobra.Command{
		Use:   "policy",
		Short: "Back up a volume periodically",
		Example: "  berth backup policy set 3f2a91c0 --every 6h --keep 8\n" +
			"  berth backup policy get 3f2a91c0\n  berth backup policy delete 3f2a91c0",
	}, newPolicySet(c), newPolicyGet(c), newPolicyDelete(c))
}

func newPolicySet(c *connector) *cobra.Command {
	var p v1.PolicySpec
	var f *backupFlags
	cmd := c.command(&cobra.Command{
		Use:   "set <id>",
		Short: "Set the backup policy of a volume or a container's volume, in place of the one before",
		Long: "Replace the backup policy of a volume as a whole. With --every, the first backup comes after one period plus at most a tenth\n" +
			"of it; with --cron, backups are made at the times of an expression of five fields.",
		Example: "  berth backup policy set 3f2a91c0 --every 6h --keep 8 --ignore 'cache/'\n" +
			"  berth backup policy set 3f2a91c0 --cron '0 4 * * *' --timezone Europe/Berlin --keep 7",
		Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		r, err := f.request()
		if err != nil {
			return err
		}
		volume, err := d.volumeOf(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		p.Target, p.Ignore, p.Quiesce = r.Target, r.Ignore, r.Quiesce
		set, err := d.Backups().SetPolicy(cmd.Context(), volume, v1.PolicyView{PolicySpec: p})
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return printDone(cmd, d.raw, set.VolumeID, "%s: a backup %s, %d kept", args[0], policyTimes(set.PolicySpec), set.Keep)
	})
	cmd.Flags().Func("every", "time between two backups, such as 6h or 1d", func(text string) error {
		every, err := v1.ParseDuration(text)
		p.Every = v1.Duration(every)
		return err
	})
	cmd.Flags().StringVar(&p.Cron, "cron", "", "times of the backups instead of --every, such as '0 4 * * *' or @daily")
	cmd.Flags().StringVar(&p.Timezone, "timezone", "", "IANA time zone of --cron, such as Europe/Berlin (default UTC)")
	cmd.Flags().IntVar(&p.Keep, "keep", 0, "how many completed backups are kept")
	cmd.MarkFlagsOneRequired("every", "cron")
	cmd.MarkFlagsMutuallyExclusive("every", "cron")
	_ = cmd.MarkFlagRequired("keep")
	f = addBackupFlags(cmd)
	return cmd
}

// policyTimes returns when a policy makes backups.
func policyTimes(p v1.PolicySpec) string {
	if p.Cron != "" {
		return fmt.Sprintf("at %s in %s", p.Cron, p.Timezone)
	}
	return "every " + span(time.Duration(p.Every))
}

func newPolicyGet(c *connector) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "get <id>",
		Short:   "Print the backup policy of a volume or a container's volume",
		Example: "  berth backup policy get 3f2a91c0 -o yaml",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		volume, err := d.volumeOf(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		p, err := d.Backups().Policy(cmd.Context(), volume)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return show(cmd, d.raw, []string{p.VolumeID}, func(t *table) {
			t.head("VOLUME", "WHEN", "KEEP", "TARGET", "NEXT", "IGNORE", "MESSAGE")
			next := ""
			if p.NextRunAt != nil {
				next = date(*p.NextRunAt)
			}
			t.row(p.VolumeID, policyTimes(p.PolicySpec), fmt.Sprint(p.Keep), string(p.Target), next, strings.Join(p.Ignore, " "), p.Message)
		})
	})
}

func newPolicyDelete(c *connector) *cobra.Command {
	return c.deleteCommand(&cobra.Command{
		Use:     "delete <id>...",
		Aliases: []string{"rm"},
		Short:   "Remove the backup policy of volumes; their backups stay",
		Example: "  berth backup policy delete 3f2a91c0",
	}, "policy removed", func(ctx context.Context, d *daemon, id string) error {
		volume, err := d.volumeOf(ctx, id)
		if err != nil {
			return err
		}
		return d.Backups().DeletePolicy(ctx, volume)
	})
}

func newBackupDownload(c *connector) *cobra.Command {
	var out string
	cmd := c.command(&cobra.Command{
		Use:   "download <backup>",
		Short: "Download the archive of a backup, a tar.zst",
		Long: "Download the archive of a backup: a tar.zst that GNU tar opens. The file appears under its name when it is complete\n" +
			"and its checksum is correct.",
		Example: "  berth backup download b1e9c2d4-5f6a-4b7c-8d9e-0a1b2c3d4e5f --file /mnt/usb/survival.tar.zst",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		b, err := d.Backups().Get(cmd.Context(), args[0])
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		name := out
		if name == "" {
			name = v1.ArchiveKey(filepath.Base(b.BackupID))
		}
		if err := downloadBackup(cmd, d, b, name); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		if name == "-" {
			return nil // standard output has the archive
		}
		raw, err := json.Marshal(map[string]any{"backup_id": b.BackupID, "file": name, "size": b.Size, "checksum": b.Checksum})
		if err != nil {
			return err
		}
		return printDone(cmd, raw, name, "%s: %s, checksum correct", name, bytesText(orZero(b.Size)))
	})
	cmd.Flags().StringVar(&out, "file", "", "file to write, - for standard output (default <backup>.tar.zst)")
	return cmd
}

// downloadBackup writes the archive of a backup to a file, or to standard output.
func downloadBackup(cmd *cobra.Command, d *daemon, b v1.BackupView, name string) error {
	content, err := d.Backups().Download(cmd.Context(), b.BackupID)
	if err != nil {
		return err
	}
	defer content.Close()
	archive := verified{content, sha256.New(), string(b.Checksum)}
	if name == "-" {
		_, err = io.Copy(cmd.OutOrStdout(), archive)
	} else {
		_, err = saveFile(name, archive)
	}
	return err
}

// verified reads an archive. At its end it returns an error if the checksum is another one.
type verified struct {
	io.Reader
	hash     hash.Hash
	checksum string
}

func (v verified) Read(p []byte) (int, error) {
	n, err := v.Reader.Read(p)
	v.hash.Write(p[:n])
	if errors.Is(err, io.EOF) {
		if got := "sha256:" + hex.EncodeToString(v.hash.Sum(nil)); got != v.checksum {
			err = fmt.Errorf("the archive has the checksum %s instead of %s: it was damaged in its target or on the way", got, v.checksum)
		}
	}
	return n, err
}

// saveFile writes content to a file of mode 0600, which appears under its name when it is complete.
func saveFile(name string, content io.Reader) (size int64, err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".berth-download-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	size, err = io.Copy(f, content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	return size, os.Rename(f.Name(), name)
}

// orZero returns what p points to, or 0.
func orZero(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}
