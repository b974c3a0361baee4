package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	v1 "berth/api/v1"
)

func newVolumesCommand(c *connector) *cobra.Command {
	cmd := c.command(&cobra.Command{
		Use:     "volumes",
		Short:   "List, create and delete volumes",
		Example: "  berth volumes\n  berth volumes create --size-limit 10GiB",
	}, func(cmd *cobra.Command, d *daemon, _ []string) error {
		list, err := d.Volumes().List(cmd.Context())
		if err != nil {
			return err
		}
		return show(cmd, d.raw, func(t *table) {
			t.row("VOLUME", "SIZE", "LIMIT", "USED BY", "CREATED")
			for _, v := range list {
				t.row(v.VolumeID, units.BytesSize(float64(v.Size)), limit(v.SizeLimit), strings.Join(v.UsedBy, ","),
					time.Unix(v.CreatedAt, 0).Format(time.DateTime))
			}
		})
	})
	cmd.AddCommand(newVolumesCreate(c), newVolumesDelete(c))
	return cmd
}

func newVolumesCreate(c *connector) *cobra.Command {
	var text string
	cmd := c.command(&cobra.Command{
		Use:     "create",
		Short:   "Create a volume and print its id",
		Example: "  volume=$(berth volumes create --size-limit 10GiB)",
	}, func(cmd *cobra.Command, d *daemon, _ []string) error {
		var size v1.Size
		if text != "" {
			var err error
			if size, err = v1.ParseSize(text); err != nil {
				return fmt.Errorf("--size-limit: %w", err)
			}
		}
		v, err := d.Volumes().Create(cmd.Context(), int64(size))
		if err != nil {
			return err
		}
		return printLine(cmd, d.raw, "%s", v.VolumeID)
	})
	cmd.Flags().StringVar(&text, "size-limit", "", "maximum size of its files, such as 10GiB (default no limit)")
	return cmd
}

func newVolumesDelete(c *connector) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "delete <id>",
		Short:   "Delete a volume that no container uses, with all files",
		Example: "  berth volumes delete 3f2a91c0",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		if err := d.Volumes().Delete(cmd.Context(), args[0]); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return printLine(cmd, d.raw, "%s: deleted", args[0])
	})
}
