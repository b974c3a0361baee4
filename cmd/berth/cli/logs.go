package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

// maxLines is how many console lines one request returns at most.
const maxLines = 10_000

// logOptions are the flags of logs.
type logOptions struct {
	client.LogOptions
	follow, times bool
	since         string
	all           bool // every line since then
	inLine        bool // the output of a stream ends within a line
}

func newLogsCommand(c *connector) *cobra.Command {
	var o logOptions
	cmd := c.command(withoutNames(&cobra.Command{
		Use:   "logs <id>",
		Short: "Print a container's console",
		Long: "Print the last lines of a container's console, its installations included. With -f continue with new\n" +
			"output: the console on standard output, states and berth's own messages on standard error. With --install,\n" +
			"print only the past output of installations. --since takes a time, such as 2026-11-22T03:00:00Z or 2026-11-22 03:00:00\n" +
			"in the local zone, or a duration before now, such as 15m or 2d. Then all lines from it on are printed unless --tail\n" +
			"limits them.",
		Example: "  berth logs survival -n 500\n  berth logs survival -f --since 10m\n  berth logs survival --install",
		Args:    cobra.ExactArgs(1),
	}), func(cmd *cobra.Command, d *daemon, args []string) error {
		if err := o.parse(cmd, time.Now()); err != nil {
			return withCode(exitUsage, err)
		}
		if err := o.print(cmd, d, args[0]); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return nil
	})
	flags := cmd.Flags()
	flags.BoolVarP(&o.follow, "follow", "f", false, "continue with new output")
	flags.BoolVar(&o.Install, "install", false, "only the output of installations")
	flags.BoolVarP(&o.times, "time", "t", false, "begin each line with its time")
	flags.IntVarP(&o.Tail, "tail", "n", 100, "number of past lines, 0 to 10000")
	flags.StringVar(&o.since, "since", "", "only lines after this time, or of this duration before now")
	cmd.MarkFlagsMutuallyExclusive("follow", "install")
	return cmd
}

// parse checks the flags, and reads the time of --since.
func (o *logOptions) parse(cmd *cobra.Command, now time.Time) (err error) {
	if o.Since, err = parseTime(o.since, now); err != nil {
		return fmt.Errorf("--since: %w", err)
	}
	if o.Tail < 0 || o.Tail > maxLines {
		return fmt.Errorf("--tail must be 0 to %d", maxLines)
	}
	if o.all = o.since != "" && !cmd.Flags().Changed("tail"); o.all {
		o.Tail = maxLines
	}
	return nil
}

// parseTime returns the time that text names; the zero time if it is empty.
func parseTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	var ago v1.Duration
	if ago.UnmarshalText([]byte(text)) == nil {
		return now.Add(-time.Duration(ago)), nil
	}
	for _, layout := range []string{time.RFC3339, dateFormat, time.DateTime, time.DateOnly} { // they also read fractions of a second
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is neither a time such as 2026-11-22T03:00:00Z nor a duration such as 15m or 2d", text)
}

// print prints the past lines, and with -f what follows.
func (o *logOptions) print(cmd *cobra.Command, d *daemon, id string) error {
	open := client.OpenOptions{Tail: o.Tail}
	if o.follow && o.since == "" {
		if _, err := d.Containers().Get(cmd.Context(), id); err != nil {
			return err // and no later attempt helps
		}
	} else {
		line, err := o.printPast(cmd, d, id)
		if err != nil || !o.follow {
			return err
		}
		open = client.OpenOptions{SinceLine: line}
	}
	return o.printNew(cmd, d, id, open)
}

// printPast prints the selected lines. It returns the cursor behind the last one.
func (o *logOptions) printPast(cmd *cobra.Command, d *daemon, id string) (line string, err error) {
	logs := v1.Logs{Lines: []v1.LogLine{}}
	for options := o.LogOptions; ; { // the newest page first; the daemon keeps 40 MiB of a console
		page, err := d.Containers().Logs(cmd.Context(), id, options)
		if err != nil {
			return "", err
		}
		logs.Line = cmp.Or(logs.Line, page.Line)
		logs.Lines = append(page.Lines, logs.Lines...)
		if !o.all || len(page.Lines) == 0 { // a page has at most maxLines, and fewer long ones
			break
		}
		options.Before = page.Lines[0].Time
	}
	if isText(cmd) {
		return logs.Line, o.printLines(cmd.OutOrStdout(), logs.Lines)
	}
	raw, err := json.Marshal(logs)
	return logs.Line, errors.Join(err, o.printJSON(cmd, raw))
}

// printJSON prints a response; with -f as one of several.
func (o *logOptions) printJSON(cmd *cobra.Command, raw []byte) error {
	if o.follow {
		return printNext(cmd, raw)
	}
	return printRaw(cmd, raw)
}

func (o *logOptions) printLines(out io.Writer, lines []v1.LogLine) error {
	for _, l := range lines {
		if _, err := io.WriteString(out, o.stamp(l.Time)+l.Data+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// stamp returns how a line of a time begins.
func (o *logOptions) stamp(at time.Time) string {
	if !o.times {
		return ""
	}
	return at.In(time.Local).Format(timeFormat + " ")
}

// printNew prints a console until the container is deleted or the command is
// interrupted, which is not an error. A broken stream is opened again.
func (o *logOptions) printNew(cmd *cobra.Command, d *daemon, id string, open client.OpenOptions) error {
	err := d.receive(cmd.ErrOrStderr(), d.Containers().Follow(cmd.Context(), id, open), func(m client.Message) error {
		return o.printOne(cmd, m)
	})
	if cmd.Context().Err() != nil {
		return nil
	}
	return err
}

// printOne prints a message of a stream.
func (o *logOptions) printOne(cmd *cobra.Command, m client.Message) error {
	if !isText(cmd) {
		return printNext(cmd, m.JSON)
	}
	if o.times && (m.Event == client.EventConsole || m.Event == client.EventLogs) {
		m.Data = o.stamped(m)
	}
	return printMessage(cmd.OutOrStdout(), cmd.ErrOrStderr(), m)
}

// stamped returns the output in a message with a time before each line that begins in it.
func (o *logOptions) stamped(m client.Message) string {
	var b strings.Builder
	n := 0
	for line := range strings.Lines(m.Data) {
		at := m.Time
		if n < len(m.Times) {
			at = m.Times[n]
		}
		if !o.inLine {
			b.WriteString(o.stamp(at))
		}
		b.WriteString(line)
		o.inLine = !strings.HasSuffix(line, "\n")
		n++
	}
	return b.String()
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
