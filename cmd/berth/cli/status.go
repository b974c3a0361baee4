package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// overview is what `berth status -o json` prints.
type overview struct {
	URL        string            `json:"url"`
	Ready      bool              `json:"ready"`
	Reason     string            `json:"reason"` // why it is not ready
	Containers []json.RawMessage `json:"containers"`
}

func newStatusCommand(c *connector) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "status",
		Short:   "Tell how the daemon and its containers are",
		Long:    "Tell how the daemon and its containers are. It fails when the daemon is not ready.",
		Example: "  berth status\n  berth status -o json | jq -r '.containers[] | select(.state == \"failed\").internal_id'",
	}, func(cmd *cobra.Command, api *client, _ []string) error {
		o, states, err := api.overview(cmd.Context())
		if err != nil {
			return err
		}
		raw, err := json.Marshal(o)
		if err != nil {
			return err
		}
		if err := show(cmd, raw, func(t *table) { o.table(t, states) }); err != nil || o.Ready {
			return err
		}
		return ErrReported
	})
}

// overview asks for the daemon's health and the state of every container.
func (c *client) overview(ctx context.Context) (o overview, states []state, err error) {
	o = overview{URL: c.base.String(), Ready: true, Containers: []json.RawMessage{}}
	if _, err := c.get(ctx, "/readyz", nil); err != nil {
		var r *refused
		if !errors.As(err, &r) {
			return o, nil, err
		}
		o.Ready, o.Reason = false, r.message
	}
	list, _, err := c.containers(ctx, nil)
	for _, each := range list {
		var s state
		raw, err := c.get(ctx, containerPath(each.InternalID), &s)
		if isStatus(err, http.StatusNotFound) {
			continue // deleted since
		}
		if err != nil {
			return o, nil, err
		}
		o.Containers, states = append(o.Containers, raw), append(states, s)
	}
	return o, states, err
}

func (o overview) table(t *table, states []state) {
	health := "ready"
	if !o.Ready {
		health = o.Reason
	}
	t.row("berth at " + o.URL + ": " + health)
	if len(states) == 0 {
		t.row("There are no containers.")
		return
	}
	now := time.Now()
	t.row("CONTAINER", "STATE", "POWER", "UP", "RESTARTS", "IMAGE", "PORTS", "NOTE")
	for _, s := range states {
		t.row(s.InternalID, s.State, s.Power, s.up(now), strconv.Itoa(s.Restarts), s.Image, s.ports(), s.remark(now))
	}
}

// containers lists those that have every label.
func (c *client) containers(ctx context.Context, labels []string) ([]state, []byte, error) {
	var body struct{ Containers []state }
	path := "/containers"
	if len(labels) > 0 {
		path += "?" + url.Values{"label": labels}.Encode()
	}
	raw, err := c.get(ctx, path, &body)
	return body.Containers, raw, err
}

func containerPath(id string) string { return "/containers/" + url.PathEscape(id) }
