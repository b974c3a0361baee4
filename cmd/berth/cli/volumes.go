package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	v1 "berth/api/v1"
)

type volumeState struct {
	VolumeID  string   `json:"volume_id"`
	Path      string   `json:"path"`
	Size      int64    `json:"size"`
	SizeLimit int64    `json:"size_limit"`
	CreatedAt int64    `json:"created_at"`
	UsedBy    []string `json:"used_by"`
}

func newVolumesCommand(c *connector) *cobra.Command {
	cmd := c.command(&cobra.Command{
		Use:     "volumes",
		Short:   "List, create and delete volumes",
		Example: "  berth volumes\n  berth volumes create --size-limit 10GiB",
	}, func(cmd *cobra.Command, api *client, _ []string) error {
		var body struct{ Volumes []volumeState }
		raw, err := api.get(cmd.Context(), "/volumes", &body)
		if err != nil {
			return err
		}
		return show(cmd, raw, func(t *table) {
			t.row("VOLUME", "SIZE", "LIMIT", "USED BY", "CREATED")
			for _, v := range body.Volumes {
				t.row(v.VolumeID, units.BytesSize(float64(v.Size)), limit(v.SizeLimit), strings.Join(v.UsedBy, ","),
					time.Unix(v.CreatedAt, 0).Format(time.DateTime))
			}
		})
	})
	cmd.AddCommand(newVolumesCreate(c), newVolumesDelete(c))
	return cmd
}

func newVolumesCreate(c *connector) *cobra.Command {
	var most string
	cmd := c.command(&cobra.Command{
		Use:     "create",
		Short:   "Create a volume, and print its id",
		Example: "  volume=$(berth volumes create --size-limit 10GiB)",
	}, func(cmd *cobra.Command, api *client, _ []string) error {
		request := map[string]int64{}
		if most != "" {
			size, err := v1.ParseSize(most)
			if err != nil {
				return fmt.Errorf("--size-limit: %w", err)
			}
			request["size_limit"] = int64(size)
		}
		var v volumeState
		raw, err := api.call(cmd.Context(), http.MethodPost, "/volumes", request, &v)
		if err != nil {
			return err
		}
		return printLine(cmd, raw, "%s", v.VolumeID)
	})
	cmd.Flags().StringVar(&most, "size-limit", "", "how much it may hold, such as 10GiB (default no limit)")
	return cmd
}

func newVolumesDelete(c *connector) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "delete <id>",
		Short:   "Delete a volume that no container uses, with everything in it",
		Example: "  berth volumes delete 3f2a91c0",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, api *client, args []string) error {
		raw, err := api.call(cmd.Context(), http.MethodDelete, "/volumes/"+url.PathEscape(args[0]), nil, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return printLine(cmd, raw, "%s: deleted", args[0])
	})
}
