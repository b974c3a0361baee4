package cli

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

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
	return c.command(&cobra.Command{
		Use:     string(action) + " <id>...",
		Short:   short,
		Long:    long + "\nThe command returns when the request is stored; `berth wait` waits until it is carried out.",
		Example: "  berth " + string(action) + " survival lobby",
		Args:    cobra.MinimumNArgs(1),
	}, func(cmd *cobra.Command, d *daemon, ids []string) error { return runVerb(cmd, d, action, ids) })
}

// runVerb requests an action for each of ids in turn. Unknown ids do not keep it from
// the others.
func runVerb(cmd *cobra.Command, d *daemon, action client.Action, ids []string) error {
	var failed error
	for _, id := range ids {
		message, err := d.Containers().Do(cmd.Context(), id, action)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s %s: %w", action, id, err))
			if client.StatusOf(err) != http.StatusNotFound {
				return failed
			}
			continue
		}
		if err := printLine(cmd, d.raw, "%s: %s", id, message); err != nil {
			return err
		}
	}
	return failed
}

func newContainersCommand(c *connector) *cobra.Command {
	var labels []string
	cmd := c.command(&cobra.Command{
		Use:     "containers [id]",
		Short:   "List the containers, or show one in detail",
		Example: "  berth containers --label game=chess\n  berth containers survival",
		Args:    cobra.MaximumNArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		if len(args) == 1 {
			found, err := d.Containers().Get(cmd.Context(), args[0])
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return show(cmd, d.raw, func(t *table) { describe(t, found, time.Now()) })
		}
		list, err := d.Containers().List(cmd.Context(), labels...)
		if err != nil {
			return err
		}
		return show(cmd, d.raw, func(t *table) {
			t.row("CONTAINER", "STATE", "POWER", "IMAGE", "VOLUME")
			for _, s := range list {
				t.row(s.InternalID, string(s.State), string(s.Power), s.Image, s.VolumeID)
			}
		})
	})
	cmd.Flags().StringArrayVarP(&labels, "label", "l", nil, "only containers with this label, name=value or name; can be repeated")
	return cmd
}

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
		return printLine(cmd, d.raw, "%s: command sent", args[0])
	})
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func newDeleteCommand(c *connector) *cobra.Command {
	var o client.DeleteOptions
	cmd := c.command(&cobra.Command{
		Use:     "delete <id>",
		Short:   "Delete a container",
		Long:    "Delete a container. It is killed and its ports are released; its volume remains unless --volume is given.",
		Example: "  berth delete survival\n  berth wait survival deleted",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		message, err := d.Containers().Delete(cmd.Context(), args[0], o)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return printLine(cmd, d.raw, "%s: %s", args[0], message)
	})
	cmd.Flags().BoolVar(&o.Volume, "volume", false, "delete its volume too, with all files")
	return cmd
}
