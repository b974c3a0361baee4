package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newSendCommand(c *connector) *cobra.Command {
	cmd := c.command(&cobra.Command{
		Use:     "send [flags] <id> <command>...",
		Short:   "Write a line to a container's console",
		Long:    "Write a line to a container's console. Everything after the id belongs to the line, words with a dash included.",
		Example: "  berth send survival say good evening",
		Args:    cobra.MinimumNArgs(2),

		DisableFlagsInUseLine: true,
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		if err := d.Containers().Send(cmd.Context(), args[0], strings.Join(args[1:], " ")); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return printDone(cmd, d.raw, args[0], "%s: command sent", args[0])
	})
	cmd.Flags().SetInterspersed(false)
	return cmd
}
