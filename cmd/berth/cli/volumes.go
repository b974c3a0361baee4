package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "berth/api/v1"
)

func newVolumesCommand(c *connector) *cobra.Command {
	var labels []string
	cmd := c.listCommand(&cobra.Command{
		Use:     "volumes",
		Short:   "List, create, change and delete volumes",
		Example: "  berth volumes\n  berth volumes create --size-limit 10GiB",
	}, func(cmd *cobra.Command, d *daemon, _ []string) (listing, error) {
		list, err := d.Volumes().List(cmd.Context(), labels...)
		return listOf(d, list, func(v v1.VolumeView) string { return v.VolumeID },
			[]string{"VOLUME", "NAME", "SIZE", "LIMIT", "USED BY", "READY", "CREATED", "PATH*"},
			func(v v1.VolumeView) []string {
				return []string{v.VolumeID, v.Name, bytesText(v.Size), limit(v.SizeLimit), strings.Join(v.UsedBy, ","),
					readyText(v), date(time.Unix(v.CreatedAt, 0)), v.Path}
			}).or("There are no volumes" + labelText(labels) + "."), err
	})
	cmd.Flags().StringArrayVarP(&labels, "label", "l", nil, "only volumes with this label, name=value or name; can be repeated")
	cmd.AddCommand(newVolumesCreate(c), newVolumesChange(c), newVolumesDelete(c))
	return cmd
}

// readyText returns whether a volume is ready, and its message.
func readyText(v v1.VolumeView) string {
	text := strconv.FormatBool(v.Ready)
	if v.Message != "" {
		text += ": " + v.Message
	}
	return text
}

func newVolumesCreate(c *connector) *cobra.Command {
	var r v1.VolumeSpec
	cmd := c.command(&cobra.Command{
		Use:     "create",
		Short:   "Create a volume and print its id",
		Example: "  volume=$(berth volumes create --name survival --label customer=42 --size-limit 10GiB)",
	}, func(cmd *cobra.Command, d *daemon, _ []string) error {
		v, err := d.Volumes().Create(cmd.Context(), r)
		if err != nil {
			return err
		}
		return printDone(cmd, d.raw, v.VolumeID, "%s", v.VolumeID)
	})
	cmd.Flags().StringVar(&r.Name, "name", "", "name for people, at most 128 characters; need not be unique")
	cmd.Flags().StringToStringVarP(&r.Labels, "label", "l", nil, "label, name=value; can be repeated")
	cmd.Flags().StringVar(&r.Storage, "storage", "", "claim of a cluster that holds its files, a key of kubernetes.claims")
	cmd.Flags().Func("size-limit", "maximum size of its files, such as 10GiB (default no limit)", func(text string) error {
		size, err := v1.ParseSize(text)
		r.SizeLimit = int64(size)
		return err
	})
	return cmd
}

func newVolumesChange(c *connector) *cobra.Command {
	var name string
	var labels map[string]string
	cmd := c.command(&cobra.Command{
		Use:     "change <id>",
		Short:   "Change the name or the labels of a volume",
		Long:    "Change the name or the labels of a volume. The labels that are given replace all of its labels; --label ''\nremoves them.",
		Example: "  berth volumes change 3f2a91c0 --name survival --label customer=42",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		var change v1.VolumeChange
		if cmd.Flags().Changed("name") {
			change.Name = &name
		}
		if cmd.Flags().Changed("label") {
			delete(labels, "") // of --label ''
			change.Labels = &labels
		}
		if change == (v1.VolumeChange{}) {
			return withCode(exitUsage, errors.New("nothing to change: give --name or --label"))
		}
		if _, err := d.Volumes().Change(cmd.Context(), args[0], change); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return printDone(cmd, d.raw, args[0], "%s: changed", args[0])
	})
	cmd.Flags().StringVar(&name, "name", "", "name for people, at most 128 characters; need not be unique")
	cmd.Flags().StringToStringVarP(&labels, "label", "l", nil, "label, name=value; can be repeated")
	return cmd
}

func newVolumesDelete(c *connector) *cobra.Command {
	return c.deleteCommand(&cobra.Command{
		Use:     "delete <id>...",
		Aliases: []string{"rm"},
		Short:   "Delete volumes that no container uses, with all files",
		Example: "  berth volumes delete 3f2a91c0",
	}, "deleted", func(ctx context.Context, d *daemon, id string) error { return d.Volumes().Delete(ctx, id) })
}
