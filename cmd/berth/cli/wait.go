package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"

	v1 "berth/api/v1"
)

// waitEvery is how often a container is looked at.
const waitEvery = 200 * time.Millisecond

// gone is what `berth wait` calls a container that is no more.
const gone = "deleted"

func newWaitCommand(c *connector) *cobra.Command {
	var limit time.Duration
	cmd := c.command(&cobra.Command{
		Use:   "wait <id> <state>",
		Short: "Wait until a container is in a state",
		Long: "Wait until a container is in a state that lasts: ready, running, exit, failed or deleted. What was\n" +
			"wished before counts: after `berth restart` the new run is meant.",
		Example: "  berth start survival && berth wait survival running --timeout 2m",
		Args:    cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, api *client, args []string) error {
		if !slices.Contains([]string{"ready", "running", "exit", "failed", gone}, args[1]) {
			return fmt.Errorf("%q is no state that lasts: wait for ready, running, exit, failed or deleted", args[1])
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), limit)
		defer cancel()
		return api.wait(ctx, cmd, args[0], args[1])
	})
	cmd.Flags().DurationVar(&limit, "timeout", 5*time.Minute, "how long to wait at most")
	return cmd
}

// wait looks at a container until it is in the state that is wanted.
func (c *client) wait(ctx context.Context, cmd *cobra.Command, id, want string) error {
	tick := time.NewTicker(waitEvery)
	defer tick.Stop()
	var last state
	for {
		var s state
		raw, err := c.get(ctx, containerPath(id), &s)
		switch {
		case want == gone && isStatus(err, http.StatusNotFound):
			return printLine(cmd, []byte(`{"state":"deleted"}`), "%s is deleted", id)
		case err != nil && (ctx.Err() == nil || last.State == ""): // else the time is up during a look
			return fmt.Errorf("%s: %w", id, err)
		case err == nil && s.State == want && s.Observed >= s.Generation:
			return printLine(cmd, raw, "%s is %s", id, want)
		case err == nil && s.State == string(v1.Failed) && want != gone && s.Observed >= s.Generation:
			return fmt.Errorf("%s is failed: %s", id, s.remark(time.Now()))
		case err == nil:
			last = s
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return gaveUp(ctx, id, want, last)
		}
	}
}

func gaveUp(ctx context.Context, id, want string, last state) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	text := last.State
	if note := last.remark(time.Now()); note != "" {
		text += ", " + note
	}
	return fmt.Errorf("%s is not %s in time: it is %s", id, want, text)
}
