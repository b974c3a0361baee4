package cli

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// verb is one wish about containers that needs no more than their ids.
type verb struct{ name, short, long string }

var verbs = []verb{
	{"start", "Start containers", "Start containers. The wish is stored: one that is being installed starts when it is ready."},
	{"stop", "Stop containers gracefully", "Stop containers gracefully: by their stop command or signal, and by force after its timeout."},
	{"kill", "End containers at once", "End containers at once. It overrides whatever else is under way."},
	{"restart", "Stop containers gracefully, then start them", "Stop containers gracefully, then start them, also those that do not run."},
	{"reinstall", "Run the installation of containers again", "Stop containers, and run their installation again in their volume. They stay stopped after it."},
}

func newVerbCommands(c *connector) (commands []*cobra.Command) {
	for _, v := range verbs {
		commands = append(commands, c.command(&cobra.Command{
			Use:     v.name + " <id>...",
			Short:   v.short,
			Long:    v.long + "\nThe answer says that the wish is stored; `berth wait` waits until it is true.",
			Example: "  berth " + v.name + " survival lobby",
			Args:    cobra.MinimumNArgs(1),
		}, v.run))
	}
	return commands
}

// run asks for each of ids in turn. One that is not there keeps none of the
// others from it: who kills three wants the two dead that there are.
func (v verb) run(cmd *cobra.Command, api *client, ids []string) error {
	var missing error
	for _, id := range ids {
		var body struct{ Message string }
		raw, err := api.call(cmd.Context(), http.MethodPost, containerPath(id)+"/"+v.name, nil, &body)
		if err != nil {
			told := errors.Join(missing, fmt.Errorf("%s %s: %w", v.name, id, err))
			if !isStatus(err, http.StatusNotFound) {
				return told
			}
			missing = told
			continue
		}
		if err := printLine(cmd, raw, "%s: %s", id, body.Message); err != nil {
			return err
		}
	}
	return missing
}

func newContainersCommand(c *connector) *cobra.Command {
	var labels []string
	cmd := c.command(&cobra.Command{
		Use:     "containers [id]",
		Short:   "List the containers, or tell everything about one",
		Example: "  berth containers --label game=chess\n  berth containers survival",
		Args:    cobra.MaximumNArgs(1),
	}, func(cmd *cobra.Command, api *client, args []string) error {
		if len(args) == 1 {
			var s state
			raw, err := api.get(cmd.Context(), containerPath(args[0]), &s)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return show(cmd, raw, func(t *table) { s.describe(t, time.Now()) })
		}
		list, raw, err := api.containers(cmd.Context(), labels)
		if err != nil {
			return err
		}
		return show(cmd, raw, func(t *table) {
			t.row("CONTAINER", "STATE", "POWER", "IMAGE", "VOLUME")
			for _, s := range list {
				t.row(s.InternalID, s.State, s.Power, s.Image, s.VolumeID)
			}
		})
	})
	cmd.Flags().StringArrayVarP(&labels, "label", "l", nil, "only those with this label, as name=value or name; can be repeated")
	return cmd
}

func newSendCommand(c *connector) *cobra.Command {
	cmd := c.command(&cobra.Command{
		Use:     "send [flags] <id> <command>...",
		Short:   "Write a line to a container's console",
		Long:    "Write a line to a container's console. Everything after the id is the line, what begins with a dash included.",
		Example: "  berth send survival say good evening",
		Args:    cobra.MinimumNArgs(2),

		DisableFlagsInUseLine: true,
	}, func(cmd *cobra.Command, api *client, args []string) error {
		body := map[string]string{"command": strings.Join(args[1:], " ")}
		raw, err := api.call(cmd.Context(), http.MethodPost, containerPath(args[0])+"/command", body, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return printLine(cmd, raw, "%s: command sent", args[0])
	})
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func newDeleteCommand(c *connector) *cobra.Command {
	var volume bool
	cmd := c.command(&cobra.Command{
		Use:     "delete <id>",
		Short:   "Delete a container",
		Long:    "Delete a container. It is ended at once and its ports are free; its volume stays, unless --volume is given.",
		Example: "  berth delete survival\n  berth wait survival deleted",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, api *client, args []string) error {
		path := containerPath(args[0])
		if volume {
			path += "?volume=true"
		}
		var body struct{ Message string }
		raw, err := api.call(cmd.Context(), http.MethodDelete, path, nil, &body)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return printLine(cmd, raw, "%s: %s", args[0], body.Message)
	})
	cmd.Flags().BoolVar(&volume, "volume", false, "delete its volume too, with everything in it")
	return cmd
}
