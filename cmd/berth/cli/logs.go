package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

const timeFormat = "2006-01-02 15:04:05.000"

func newLogsCommand(c *connector) *cobra.Command {
	var follow, times, raw bool
	var o client.LogOptions
	cmd := c.command(&cobra.Command{
		Use:   "logs <id>",
		Short: "Print a container's console",
		Long: "Print the last lines of a container's console, its installations included. With -f continue with new\n" +
			"output: the console on standard output, states and berth's own messages on standard error.",
		Example: "  berth logs survival -n 500\n  berth logs survival -f\n  berth logs survival --install",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		if raw {
			cmd.SetOut(unfiltered(cmd.OutOrStdout()))
		}
		var err error
		if follow {
			err = followLogs(cmd, d, args[0], o.Tail)
		} else {
			err = printLogs(cmd, d, args[0], o, times)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return nil
	})
	flags := cmd.Flags()
	flags.BoolVarP(&follow, "follow", "f", false, "continue with new output")
	flags.BoolVar(&o.Install, "install", false, "only the console of the installation")
	flags.BoolVarP(&times, "time", "t", false, "begin each line with its time")
	flags.BoolVar(&raw, "raw", false, "write control characters to a terminal unescaped")
	flags.IntVarP(&o.Tail, "lines", "n", 100, "number of past lines, 0 to 10000")
	cmd.MarkFlagsMutuallyExclusive("follow", "install")
	cmd.MarkFlagsMutuallyExclusive("follow", "time")
	return cmd
}

func printLogs(cmd *cobra.Command, d *daemon, id string, o client.LogOptions, times bool) error {
	lines, err := d.Containers().Logs(cmd.Context(), id, o)
	if err != nil {
		return err
	}
	if asJSON(cmd) {
		return printJSON(cmd.OutOrStdout(), d.raw)
	}
	for _, l := range lines {
		if times {
			l.Data = l.Time.In(time.Local).Format(timeFormat+" ") + l.Data
		}
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), l.Data); err != nil {
			return err
		}
	}
	return nil
}

// followLogs prints a console until the daemon closes the stream or the command is
// interrupted. An interrupt is not an error.
func followLogs(cmd *cobra.Command, d *daemon, id string, tail int) error {
	for m, err := range d.Containers().Follow(cmd.Context(), id, tail) {
		if cmd.Context().Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if asJSON(cmd) {
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", m.JSON)
		} else {
			err = printMessage(cmd.OutOrStdout(), cmd.ErrOrStderr(), m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func printMessage(out, errOut io.Writer, m client.Message) (err error) {
	switch m.Event {
	case client.EventConsole, client.EventLogs:
		_, err = io.WriteString(out, m.Data)
	case v1.EventState:
		_, err = fmt.Fprintf(errOut, "berth: state is %s\n", m.Data)
	case v1.EventMessage:
		_, err = fmt.Fprintf(errOut, "berth: %s\n", m.Data)
	}
	return err
}
