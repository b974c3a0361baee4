package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	v1 "berth/api/v1"
)

// eventPage is how many stored transitions are asked for at once.
const eventPage = 1000

type eventList struct {
	Events         []v1.Event
	Oldest, Newest uint64
}

func newEventsCommand(c *cli) *cobra.Command {
	var follow bool
	var last int
	var since int64
	cmd := c.command(&cobra.Command{
		Use:   "events",
		Short: "Print what happened to the containers",
		Long: "Print the stored transitions of all containers, oldest first: their number, time, container, and the new\n" +
			"state or a message. With -f go on with what comes.",
		Example: "  berth events -n 20\n  berth events -f --since 1200",
	}, func(cmd *cobra.Command, api *client, _ []string) error {
		if last < 0 || since < 0 && cmd.Flags().Changed("since") {
			return errors.New("--last and --since must not be negative")
		}
		from, err := api.firstEvent(cmd.Context(), since, last)
		if err != nil {
			return err
		}
		if follow {
			return api.followEvents(cmd, from)
		}
		return api.events(cmd, from)
	})
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what comes")
	cmd.Flags().IntVarP(&last, "last", "n", 50, "how many of the past")
	cmd.Flags().Int64Var(&since, "since", -1, "those after this number, however many")
	cmd.MarkFlagsMutuallyExclusive("last", "since")
	return cmd
}

// firstEvent is the number after which printing begins.
func (c *client) firstEvent(ctx context.Context, since int64, last int) (uint64, error) {
	if since >= 0 {
		return uint64(since), nil
	}
	var list eventList
	_, err := c.get(ctx, "/events?limit=1", &list)
	return list.Newest - min(list.Newest, uint64(last)), err
}

// events prints the stored ones after from.
func (c *client) events(cmd *cobra.Command, from uint64) error {
	for {
		var list eventList
		path := fmt.Sprintf("/events?since=%d&limit=%d", from, eventPage)
		raw, err := c.get(cmd.Context(), path, &list)
		if err != nil {
			return err
		}
		if asJSON(cmd) {
			err = printJSON(cmd.OutOrStdout(), raw)
		} else {
			err = printEvents(cmd.OutOrStdout(), list.Events)
		}
		if err != nil || len(list.Events) < eventPage {
			return err
		}
		from = list.Events[len(list.Events)-1].Seq
	}
}

func printEvents(out io.Writer, events []v1.Event) error {
	for _, e := range events {
		_, err := fmt.Fprintf(out, "%6d  %s  %-16s  %s\n", e.Seq, e.Time.Local().Format("2006-01-02 15:04:05.000"), e.Container, e.Data)
		if err != nil {
			return err
		}
	}
	return nil
}

// followEvents prints those after from, and what comes. The current states that
// a socket begins with are repetitions, and left out.
func (c *client) followEvents(cmd *cobra.Command, from uint64) error {
	err := c.follow(cmd.Context(), "/ws?since="+strconv.FormatUint(from, 10), func(m message, raw []byte) error {
		if m.Event == "gap" {
			_, err := fmt.Fprintf(cmd.ErrOrStderr(), "berth: what was before number %s is no longer kept\n", m.Data)
			return err
		}
		if m.Seq <= from {
			return nil
		}
		from = m.Seq
		if asJSON(cmd) {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", raw)
			return err
		}
		return printEvents(cmd.OutOrStdout(), []v1.Event{{Seq: m.Seq, Time: m.Time.In(time.Local), Container: m.Container, Event: m.Event, Data: m.Data}})
	})
	if err != nil {
		return fmt.Errorf("%w; go on with berth events -f --since %d", err, from)
	}
	return nil
}
