package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"berth/api/client"
)

// overview is the output of `berth status -o json`.
type overview struct {
	URL        string            `json:"url"`
	Ready      bool              `json:"ready"`
	Reason     string            `json:"reason"` // why the daemon is not ready
	Containers []json.RawMessage `json:"containers"`
}

func newStatusCommand(c *connector) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "status",
		Short:   "Show the state of the daemon and of its containers",
		Long:    "Show the state of the daemon and of its containers. The command fails if the daemon is not ready.",
		Example: "  berth status\n  berth status -o json | jq -r '.containers[] | select(.state == \"failed\").internal_id'",
	}, func(cmd *cobra.Command, d *daemon, _ []string) error {
		o, list, err := newOverview(cmd.Context(), d)
		if err != nil {
			return err
		}
		raw, err := json.Marshal(o)
		if err != nil {
			return err
		}
		if err := show(cmd, raw, func(t *table) { o.table(t, list) }); err != nil || o.Ready {
			return err
		}
		return ErrReported
	})
}

// newOverview gets the readiness of the daemon and the state of every container.
func newOverview(ctx context.Context, d *daemon) (o overview, list []client.Container, err error) {
	o = overview{URL: d.URL(), Ready: true, Containers: []json.RawMessage{}}
	if err := d.Ready(ctx); err != nil {
		if client.StatusOf(err) == 0 {
			return o, nil, err
		}
		o.Ready, o.Reason = false, err.Error()
	}
	summaries, err := d.Containers().List(ctx)
	for _, s := range summaries {
		c, err := d.Containers().Get(ctx, s.InternalID)
		if client.StatusOf(err) == http.StatusNotFound {
			continue // it was deleted after the list
		}
		if err != nil {
			return o, nil, err
		}
		o.Containers, list = append(o.Containers, d.raw), append(list, c)
	}
	return o, list, err
}

func (o overview) table(t *table, list []client.Container) {
	health := "ready"
	if !o.Ready {
		health = o.Reason
	}
	t.row("berth at " + o.URL + ": " + health)
	if len(list) == 0 {
		t.row("There are no containers.")
		return
	}
	now := time.Now()
	t.row("CONTAINER", "STATE", "POWER", "UP", "RESTARTS", "IMAGE", "PORTS", "NOTE")
	for _, c := range list {
		t.row(c.InternalID, string(c.State), string(c.Power), uptime(c, now), strconv.Itoa(c.RestartCount), c.Image,
			portList(c.Ports), note(c, now))
	}
}
