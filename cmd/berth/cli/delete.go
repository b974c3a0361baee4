package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"berth/api/client"
)

func newDeleteCommand(c *connector) *cobra.Command {
	var o client.DeleteOptions
	var w *waiting
	cmd := c.command(&cobra.Command{
		Use:     "delete <id>...",
		Aliases: []string{"rm"},
		Short:   "Delete containers",
		Long:    "Delete containers. They are killed and their ports are released; their volumes remain unless --volume is given.",
		Example: "  berth delete survival lobby --wait",
		Args:    cobra.MinimumNArgs(1),
	}, func(cmd *cobra.Command, d *daemon, ids []string) error {
		return w.request(cmd, d, ids, goal{name: deleted}, func(id string) (string, error) {
			message, err := d.Containers().Delete(cmd.Context(), id, o)
			if err != nil {
				return "", fmt.Errorf("delete %s: %w", id, err)
			}
			return message, nil
		})
	})
	w = addWaitFlags(cmd)
	cmd.Flags().BoolVar(&o.Volume, "volume", false, "delete its volume too, with all files")
	return cmd
}
