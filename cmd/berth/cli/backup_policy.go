package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

func newBackupPolicy(c *connector) *cobra.Command {
	return withSubcommands(&cobra.Command{
		Use:   "policy",
		Short: "Back up a volume periodically",
		Example: "  berth backup policy set 3f2a91c0 --every 6h --keep 8\n" +
			"  berth backup policy get 3f2a91c0\n  berth backup policy delete 3f2a91c0",
	}, newPolicySet(c), newPolicyGet(c), newPolicyDelete(c))
}

func newPolicySet(c *connector) *cobra.Command {
	var every string
	var keep int
	var f *backupFlags
	cmd := c.command(&cobra.Command{
		Use:     "set <id>",
		Short:   "Set the backup policy of a volume or a container's volume, in place of the one before",
		Long:    "Replace the backup policy of a volume as a whole. The first backup comes after one period plus at most a tenth of it.",
		Example: "  berth backup policy set 3f2a91c0 --every 6h --keep 8 --ignore 'cache/'",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		period, err := v1.ParseDuration(every)
		if err != nil {
			return withCode(exitUsage, fmt.Errorf("--every: %w", err))
		}
		r, err := f.request()
		if err != nil {
			return err
		}
		volume, err := volumeOf(cmd.Context(), d, args[0])
		if err != nil {
			return err
		}
		p, err := client.BackupsOf(d.Client).SetPolicy(cmd.Context(), volume, client.BackupPolicy{Every: v1.Duration(period), Keep: keep,
			Target: r.Target, Ignore: r.Ignore, Quiesce: r.Quiesce})
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return printDone(cmd, d.raw, p.VolumeID, "%s: a backup every %s, %d kept", args[0], span(time.Duration(p.Every)), p.Keep)
	})
	checkedFlag(cmd, &every, "every", "time between two backups, such as 6h or 1d", checkDuration)
	cmd.Flags().IntVar(&keep, "keep", 0, "how many completed backups are kept")
	_ = cmd.MarkFlagRequired("every")
	_ = cmd.MarkFlagRequired("keep")
	f = addBackupFlags(cmd)
	return cmd
}

func newPolicyGet(c *connector) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "get <id>",
		Short:   "Print the backup policy of a volume or a container's volume",
		Example: "  berth backup policy get 3f2a91c0 -o yaml",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		volume, err := volumeOf(cmd.Context(), d, args[0])
		if err != nil {
			return err
		}
		p, err := client.BackupsOf(d.Client).Policy(cmd.Context(), volume)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return show(cmd, d.raw, []string{p.VolumeID}, func(t *table) {
			t.head(column{title: "VOLUME"}, column{title: "EVERY"}, column{title: "KEEP"}, column{title: "TARGET"}, column{title: "NEXT"}, column{title: "IGNORE"}, column{title: "MESSAGE"})
			next := ""
			if p.NextRunAt != nil {
				next = date(*p.NextRunAt)
			}
			t.row(p.VolumeID, span(time.Duration(p.Every)), fmt.Sprint(p.Keep), string(p.Target), next, strings.Join(p.Ignore, " "), p.Message)
		})
	})
}

func newPolicyDelete(c *connector) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "delete <id>...",
		Aliases: []string{"rm"},
		Short:   "Remove the backup policy of volumes; their backups stay",
		Example: "  berth backup policy delete 3f2a91c0",
		Args:    cobra.MinimumNArgs(1),
	}, func(cmd *cobra.Command, d *daemon, ids []string) error {
		return each(cmd.Context(), d, ids, func(id string) error {
			volume, err := volumeOf(cmd.Context(), d, id)
			if err != nil {
				return err
			}
			if err := client.BackupsOf(d.Client).DeletePolicy(cmd.Context(), volume); err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
			return printDone(cmd, d.raw, id, "%s: policy removed", id)
		})
	})
}
