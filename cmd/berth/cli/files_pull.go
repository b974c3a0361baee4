package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

// pullPoll is how often a download is observed with --wait.
const pullPoll = 500 * time.Millisecond

func newFilesPull(c *connector) *cobra.Command {
	var checksum string
	var w *waiting
	cmd := c.command(&cobra.Command{
		Use:     "pull <url> <id>:<path>",
		Short:   "Let the daemon download a URL into a file",
		Long:    "Let the daemon download a URL into a file, in the background. files.pull must be true in the configuration.\n\n" + filesHelp,
		Example: "  berth files pull https://mods.example/a.zip survival:mods/a.zip --wait",
		Args:    cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		a, volume, err := resolvePath(cmd, d, args[1])
		if err != nil {
			return err
		}
		id, err := d.Files().Pull(cmd.Context(), volume, client.PullRequest{URL: args[0], Path: a.path, Checksum: checksum})
		if err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		if !w.enabled {
			return printDone(cmd, d.raw, id, "%s: download started (%s)", a, id)
		}
		if err := awaitPull(cmd.Context(), d, volume, id, w.timeout); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		return answer(cmd, map[string]any{"pull_id": id, "file": a.String()}, a.String()+": downloaded")
	})
	cmd.Flags().StringVar(&checksum, "checksum", "", "sha256:<hex>; another content is discarded")
	w = addWaitFlags(cmd)
	return withoutNames(cmd)
}

// awaitPull waits until a download has ended, and returns an error unless it is
// completed.
func awaitPull(ctx context.Context, d *daemon, volume, id string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(pullPoll)
	defer tick.Stop()
	for {
		list, err := d.Files().Pulls(ctx, volume)
		for _, p := range list {
			switch {
			case p.PullID != id || !p.State.Final():
			case p.State == v1.PullCompleted:
				return nil
			default:
				return fmt.Errorf("the download is %s: %s", p.State, p.Message)
			}
		}
		select {
		case <-ctx.Done():
			return withCode(exitTimeout, errors.New("the download has not ended in time; it goes on"))
		case <-tick.C:
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

func newFilesPulls(c *connector) *cobra.Command {
	var cancel string
	cmd := c.command(&cobra.Command{
		Use:     "pulls <id>:",
		Short:   "List the downloads into a volume, or cancel one",
		Long:    "List the downloads into a volume that run, and the last ones that have ended.\n\n" + filesHelp,
		Example: "  berth files pulls survival:\n  berth files pulls survival: --cancel 7c9e6679-7425-40de-944b-e07fc1f90ae7",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		a, volume, err := resolve(cmd, d, args[0])
		if err != nil {
			return err
		}
		if cancel != "" {
			if err := d.Files().CancelPull(cmd.Context(), volume, cancel); err != nil {
				return fmt.Errorf("%s: %w", a, err)
			}
			return printDone(cmd, d.raw, cancel, "%s: cancelled", cancel)
		}
		list, err := d.Files().Pulls(cmd.Context(), volume)
		if err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		return show(cmd, d.raw, names(list, func(p client.Pull) string { return p.PullID }), func(t *table) {
			t.head(column{title: "PULL ID"}, column{title: "STATE"}, column{title: "SIZE"}, column{title: "PATH"}, column{title: "MESSAGE"}, column{title: "URL", min: 16})
			for _, p := range list {
				t.row(p.PullID, string(p.State), units.BytesSize(float64(p.Progress.Bytes)), p.Path, p.Message, p.URL)
			}
		})
	})
	cmd.Flags().StringVar(&cancel, "cancel", "", "the id of a download to cancel")
	return cmd
}
