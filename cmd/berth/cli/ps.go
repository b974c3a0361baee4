package cli

import (
	"encoding/json"

	"github.com/spf13/cobra"
)

// overview is the output of `berth ps -o json`.
type overview struct {
	URL        string            `json:"url"`
	Ready      bool              `json:"ready"`
	Reason     string            `json:"reason"` // why the daemon is not ready
	Containers []json.RawMessage `json:"containers"`
}

func newPsCommand(c *connector) *cobra.Command {
	var labels []string
	cmd := c.listCommand(&cobra.Command{
		Use:     "ps",
		Aliases: []string{"status"},
		Short:   "List the containers with their states, and report whether the daemon is ready",
		Long: "List the containers with their states, and why those that should run do not. SINCE is the time in the state.\n" +
			"A line above the table reports whether the daemon is ready; if it is not, the exit code is 7.",
		Example: "  berth ps\n  berth ps --label game=chess\n" +
			"  berth ps -o json | jq -r '.containers[] | select(.state == \"failed\").internal_id'",
	}, func(cmd *cobra.Command, d *daemon, _ []string) (listing, error) {
		reason, err := unready(cmd.Context(), d)
		if err != nil {
			return listing{}, err
		}
		o := overview{URL: d.URL(), Ready: reason == "", Reason: reason}
		l, err := listContainers(cmd, d, labels)
		if err != nil {
			return listing{}, err
		}
		return o.add(l)
	})
	addLabelFlag(cmd, &labels)
	return cmd
}

// add adds the readiness of the daemon to a list of its containers.
func (o overview) add(l listing) (listing, error) {
	o.Containers = itemsOf(l.raw, "containers")
	var err error
	if l.raw, err = json.Marshal(o); err != nil {
		return l, err
	}
	l.above = "berth at " + o.URL + ": ready"
	if !o.Ready {
		l.above = "berth at " + o.URL + " is not ready: " + o.Reason + "; berth doctor names what to do"
		l.err = withCode(exitUnavailable, ErrReported)
	}
	return l, nil
}
