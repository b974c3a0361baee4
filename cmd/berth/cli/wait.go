package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

// waitInterval is the time between two requests for the state of a container.
const waitInterval = 200 * time.Millisecond

// deleted is the state for `berth wait` of a container that does not exist any more.
const deleted = "deleted"

func newWaitCommand(c *connector) *cobra.Command {
	var timeout time.Duration
	cmd := c.command(&cobra.Command{
		Use:   "wait <id> <state>",
		Short: "Wait until a container is in a state",
		Long: "Wait until a container is in one of the states ready, running, exit, failed and deleted, and all earlier\n" +
			"requests are carried out: after `berth restart`, the command waits for the new run.",
		Example: "  berth start survival && berth wait survival running --timeout 2m",
		Args:    cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		if !slices.Contains([]string{"ready", "running", "exit", "failed", deleted}, args[1]) {
			return fmt.Errorf("cannot wait for %q: containers pass through it; wait for ready, running, exit, failed or deleted", args[1])
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
		defer cancel()
		return wait(ctx, cmd, d, args[0], args[1])
	})
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long to wait at most")
	return cmd
}

// wait polls a container until it is in a state.
func wait(ctx context.Context, cmd *cobra.Command, d *daemon, id, state string) error {
	tick := time.NewTicker(waitInterval)
	defer tick.Stop()
	var last client.Container
	for {
		c, err := d.Containers().Get(ctx, id)
		switch {
		case state == deleted && client.StatusOf(err) == http.StatusNotFound:
			return printLine(cmd, []byte(`{"state":"deleted"}`), "%s is deleted", id)
		case err != nil && (ctx.Err() == nil || last.State == ""): // else the timeout has ended this request
			return fmt.Errorf("%s: %w", id, err)
		case err == nil && string(c.State) == state && c.Observed():
			return printLine(cmd, d.raw, "%s is %s", id, state)
		case err == nil && c.State == v1.Failed && state != deleted && c.Observed():
			return fmt.Errorf("%s is failed: %s", id, note(c, time.Now()))
		case err == nil:
			last = c
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return waitError(ctx, id, state, last)
		}
	}
}

// waitError returns the error of a wait whose context has ended.
func waitError(ctx context.Context, id, state string, last client.Container) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	text := string(last.State)
	if more := note(last, time.Now()); more != "" {
		text += ", " + more
	}
	return fmt.Errorf("%s is not %s in time: it is %s", id, state, text)
}
