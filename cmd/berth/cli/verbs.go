package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"berth/api/client"
)

func newVerbCommands(c *connector) []*cobra.Command {
	return []*cobra.Command{
		newVerbCommand(c, client.Start, "Start containers",
			"Start containers. A container that is being installed starts when it is ready."),
		newVerbCommand(c, client.Stop, "Stop containers gracefully",
			"Stop containers gracefully: with their stop command or signal, and by force after its timeout."),
		newVerbCommand(c, client.Kill, "Kill containers",
			"Kill containers at once. This overrides every other request."),
		newVerbCommand(c, client.Restart, "Stop containers gracefully, then start them",
			"Stop containers gracefully, then start them. Containers that do not run are started too."),
		newVerbCommand(c, client.Reinstall, "Run the installation of containers again",
			"Stop containers and run their installation again in their volume. They stay stopped afterwards."),
	}
}

func newVerbCommand(c *connector, action client.Action, short, long string) *cobra.Command {
	var w *waiting
	cmd := c.command(&cobra.Command{
		Use:     string(action) + " <id>...",
		Short:   short,
		Long:    long + "\nThe command returns when the request is stored; with --wait when it is carried out.",
		Example: "  berth " + string(action) + " survival lobby --wait",
		Args:    cobra.MinimumNArgs(1),
	}, func(cmd *cobra.Command, d *daemon, ids []string) error {
		return w.request(cmd, d, ids, goalOf(action), func(id string) (string, error) {
			message, err := d.Containers().Do(cmd.Context(), id, action)
			if err != nil {
				return "", fmt.Errorf("%s %s: %w", action, id, err)
			}
			return message, nil
		})
	})
	w = addWaitFlags(cmd)
	return cmd
}
