package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

// eventPage is how many stored transitions one request returns.
const eventPage = 1000

func newEventsCommand(c *connector) *cobra.Command {
	var follow bool
	var last int
	var since int64
	var epoch string
	cmd := c.command(&cobra.Command{
		Use:   "events",
		Short: "Print the state transitions of the containers",
		Long: "Print the stored transitions of all containers, oldest first: number, time, container, and the new state\n" +
			"or a message. With -f continue with new transitions.",
		Example: "  berth events -n 20\n  berth events -f --since 1200",
	}, func(cmd *cobra.Command, d *daemon, _ []string) error {
		if last < 0 || since < 0 && cmd.Flags().Changed("since") {
			return errors.New("--last and --since must not be negative")
		}
		if epoch != "" && since < 0 {
			return errors.New("--epoch needs --since: it is the epoch of that number")
		}
		from, err := firstEvent(cmd.Context(), d, since, last)
		if err != nil {
			return err
		}
		from.Epoch = cmp.Or(epoch, from.Epoch)
		if follow {
			return followEvents(cmd, d, from)
		}
		return listEvents(cmd, d, from)
	})
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "continue with new transitions")
	cmd.Flags().IntVarP(&last, "last", "n", 50, "number of past transitions")
	cmd.Flags().Int64Var(&since, "since", -1, "all transitions after this number")
	cmd.Flags().StringVar(&epoch, "epoch", "", "the epoch of that number; if the daemon's store has another one, all transitions are printed")
	cmd.MarkFlagsMutuallyExclusive("last", "since")
	return cmd
}

// firstEvent returns the cursor after which printing begins.
func firstEvent(ctx context.Context, d *daemon, since int64, last int) (client.Cursor, error) {
	if since >= 0 {
		return client.Cursor{Seq: uint64(since)}, nil
	}
	newest, err := d.Events().Newest(ctx)
	newest.Seq -= min(newest.Seq, uint64(last))
	return newest, err
}

// listEvents prints the stored transitions after a cursor.
func listEvents(cmd *cobra.Command, d *daemon, after client.Cursor) error {
	for {
		list, err := d.Events().List(cmd.Context(), after, eventPage)
		if err != nil {
			return err
		}
		if asJSON(cmd) {
			err = printJSON(cmd.OutOrStdout(), d.raw)
		} else {
			err = printEvents(cmd.OutOrStdout(), list.Events)
		}
		if err != nil || len(list.Events) < eventPage {
			return err
		}
		after = client.Cursor{Seq: list.Events[len(list.Events)-1].Seq, Epoch: list.Epoch}
	}
}

func printEvents(out io.Writer, events []v1.Event) error {
	for _, e := range events {
		_, err := fmt.Fprintf(out, "%6d  %s  %-16s  %s\n", e.Seq, e.Time.In(time.Local).Format(timeFormat), e.Container, e.Data)
		if err != nil {
			return err
		}
	}
	return nil
}

// followEvents prints the transitions after a cursor, and new ones as they happen, until
// the daemon closes the stream or the command is interrupted. An interrupt is not an
// error.
func followEvents(cmd *cobra.Command, d *daemon, after client.Cursor) error {
	for m, err := range d.Events().Watch(cmd.Context(), after) {
		if cmd.Context().Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w; continue with berth events -f %s", err, cursorFlags(after))
		}
		if after.Epoch != "" && m.Epoch != "" && m.Epoch != after.Epoch {
			_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "berth: the daemon's store was restored: its numbers belong to another epoch now")
			after.Seq = 0
		}
		after = client.Cursor{Seq: cmp.Or(m.Seq, after.Seq), Epoch: cmp.Or(m.Epoch, after.Epoch)}
		if err := printTransition(cmd, m); err != nil {
			return err
		}
	}
	return nil
}

func printTransition(cmd *cobra.Command, m client.Message) (err error) {
	switch {
	case m.Event == client.EventGap:
		_, err = fmt.Fprintf(cmd.ErrOrStderr(), "berth: transitions before number %s are not stored any more\n", m.Data)
	case asJSON(cmd):
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", m.JSON)
	default:
		err = printEvents(cmd.OutOrStdout(), []v1.Event{{Seq: m.Seq, Time: m.Time, Container: m.Container, Event: m.Event, Data: m.Data}})
	}
	return err
}

// cursorFlags returns the flags with which a command continues after a cursor.
func cursorFlags(c client.Cursor) string {
	text := "--since " + strconv.FormatUint(c.Seq, 10)
	if c.Epoch != "" {
		text += " --epoch " + c.Epoch
	}
	return text
}
