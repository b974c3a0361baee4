package cli

import (
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"berth/api/stream"
	v1 "berth/api/v1"
)

func newLogsCommand(c *connector) *cobra.Command {
	var follow, install, times, raw bool
	var lines int
	cmd := c.command(&cobra.Command{
		Use:   "logs <id>",
		Short: "Print a container's console",
		Long: "Print the last lines of a container's console, that of its installations included. With -f go on with\n" +
			"what comes: the console on standard output, states and berth's own messages on standard error.",
		Example: "  berth logs survival -n 500\n  berth logs survival -f\n  berth logs survival --install",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, api *client, args []string) error {
		if raw {
			cmd.SetOut(unfiltered(cmd.OutOrStdout()))
		}
		if follow {
			return api.followLogs(cmd, args[0], lines)
		}
		path := containerPath(args[0]) + "/logs"
		if install {
			path = containerPath(args[0]) + "/install-logs"
		}
		return api.logs(cmd, path+"?tail="+strconv.Itoa(lines), times)
	})
	flags := cmd.Flags()
	flags.BoolVarP(&follow, "follow", "f", false, "go on with what comes")
	flags.BoolVar(&install, "install", false, "only the console of the installation")
	flags.BoolVarP(&times, "time", "t", false, "begin each line with its time")
	flags.BoolVar(&raw, "raw", false, "write control characters to a terminal as they are, not escaped")
	flags.IntVarP(&lines, "lines", "n", 100, "how many lines of the past, 0 to 10000")
	cmd.MarkFlagsMutuallyExclusive("follow", "install")
	cmd.MarkFlagsMutuallyExclusive("follow", "time")
	return cmd
}

func (c *client) logs(cmd *cobra.Command, path string, times bool) error {
	var body struct {
		Lines []struct {
			Time time.Time
			Data string
		}
	}
	raw, err := c.get(cmd.Context(), path, &body)
	if err != nil {
		return fmt.Errorf("%s: %w", cmd.Flags().Arg(0), err)
	}
	if asJSON(cmd) {
		return printJSON(cmd.OutOrStdout(), raw)
	}
	for _, l := range body.Lines {
		if times {
			l.Data = l.Time.Local().Format("2006-01-02 15:04:05.000 ") + l.Data
		}
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), l.Data); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) followLogs(cmd *cobra.Command, id string, lines int) error {
	out, said := cmd.OutOrStdout(), cmd.ErrOrStderr()
	path := "/ws/" + url.PathEscape(id) + "?tail=" + strconv.Itoa(lines)
	err := c.follow(cmd.Context(), path, func(m message, raw []byte) error {
		if asJSON(cmd) {
			_, err := fmt.Fprintf(out, "%s\n", raw)
			return err
		}
		return printMessage(out, said, m)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	return nil
}

func printMessage(out, said io.Writer, m message) (err error) {
	switch m.Event {
	case stream.EventConsole, stream.EventLogs:
		_, err = io.WriteString(out, m.Data)
	case v1.EventState:
		_, err = fmt.Fprintf(said, "berth: state is %s\n", m.Data)
	case v1.EventMessage:
		_, err = fmt.Fprintf(said, "berth: %s\n", m.Data)
	}
	return err
}
