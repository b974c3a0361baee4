package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	v1 "berth/api/v1"
)

// eventPage is how many stored transitions are asked for at once.
const eventPage = 1000

type eventList struct {
	Events         []v1.Event
	Epoch          string
	Oldest, Newest uint64
}

func newEventsCommand(c *connector) *cobra.Command {
	var follow bool
	var last int
	var since int64
	var epoch string
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
		if epoch != "" && since < 0 {
			return errors.New("--epoch needs --since: it says what that number is counted in")
		}
		from, err := api.firstEvent(cmd.Context(), since, last)
		if err != nil {
			return err
		}
		from.epoch = cmp.Or(epoch, from.epoch)
		if follow {
			return api.followEvents(cmd, from)
		}
		return api.events(cmd, from)
	})
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what comes")
	cmd.Flags().IntVarP(&last, "last", "n", 50, "how many of the past")
	cmd.Flags().Int64Var(&since, "since", -1, "those after this number, however many")
	cmd.Flags().StringVar(&epoch, "epoch", "", "the epoch of that number; if the daemon's store is in another, all are printed")
	cmd.MarkFlagsMutuallyExclusive("last", "since")
	return cmd
}

// place is a number and the epoch that it is counted in; empty is any.
type place struct {
	seq   uint64
	epoch string
}

func (p place) query() string {
	text := "since=" + strconv.FormatUint(p.seq, 10)
	if p.epoch != "" {
		text += "&epoch=" + url.QueryEscape(p.epoch)
	}
	return text
}

// flags are what a command goes on from here with.
func (p place) flags() string {
	text := "--since " + strconv.FormatUint(p.seq, 10)
	if p.epoch != "" {
		text += " --epoch " + p.epoch
	}
	return text
}

// firstEvent is the place after which printing begins.
func (c *client) firstEvent(ctx context.Context, since int64, last int) (place, error) {
	if since >= 0 {
		return place{seq: uint64(since)}, nil
	}
	var list eventList
	_, err := c.get(ctx, "/events?limit=1", &list)
	return place{list.Newest - min(list.Newest, uint64(last)), list.Epoch}, err
}

// events prints the stored ones after from.
func (c *client) events(cmd *cobra.Command, from place) error {
	for {
		var list eventList
		path := fmt.Sprintf("/events?%s&limit=%d", from.query(), eventPage)
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
		from = place{list.Events[len(list.Events)-1].Seq, list.Epoch}
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
func (c *client) followEvents(cmd *cobra.Command, from place) error {
	err := c.follow(cmd.Context(), "/ws?"+from.query(), func(m message, raw []byte) error {
		if m.Epoch != "" && m.Epoch != from.epoch {
			if from.epoch != "" {
				_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "berth: the daemon's store was restored: numbers are counted in another epoch now")
				from.seq = 0
			}
			from.epoch = m.Epoch
		}
		if m.Event == "gap" {
			_, err := fmt.Fprintf(cmd.ErrOrStderr(), "berth: what was before number %s is no longer kept\n", m.Data)
			return err
		}
		if m.Seq <= from.seq {
			return nil
		}
		from.seq = m.Seq
		if asJSON(cmd) {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", raw)
			return err
		}
		return printEvents(cmd.OutOrStdout(), []v1.Event{{Seq: m.Seq, Time: m.Time.In(time.Local), Container: m.Container, Event: m.Event, Data: m.Data}})
	})
	if err != nil {
		return fmt.Errorf("%w; go on with berth events -f %s", err, from.flags())
	}
	return nil
}
