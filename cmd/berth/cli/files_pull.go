package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

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
		if err := waitPull(cmd, d, w, volume, id, a.path); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		return answer(cmd, map[string]any{"pull_id": id, "file": a.String()}, a.String()+": downloaded")
	})
	cmd.Flags().StringVar(&checksum, "checksum", "", "sha256:<hex>; another content is discarded")
	w = addWaitFlags(cmd)
	return withoutNames(cmd)
}

// waitPull waits until a download has ended, with its progress on a terminal, and
// returns an error unless it is completed.
func waitPull(cmd *cobra.Command, d *daemon, w *waiting, volume, id, file string) error {
	p := newProgress(cmd.ErrOrStderr(), -1)
	defer p.close()
	p.name.Store(&file)
	get := func(ctx context.Context) (client.Pull, error) {
		list, err := d.Files().Pulls(ctx, volume)
		i := slices.IndexFunc(list, func(p client.Pull) bool { return p.PullID == id })
		if err != nil || i < 0 {
			return client.Pull{}, err
		}
		return list[i], nil
	}
	pull, err := poll(cmd.Context(), w, id, get, func(pull client.Pull) bool {
		p.bytes.Store(pull.Progress.Bytes)
		if total := pull.Progress.Total; total != nil {
			p.total.Store(*total)
		}
		return pull.PullID == "" || pull.State.Final()
	})
	switch {
	case err != nil:
		return err
	case pull.PullID == "":
		return fmt.Errorf("download %s: its record was removed; list the files of the volume", id)
	case pull.State != v1.PullCompleted:
		return fmt.Errorf("the download is %s: %s", pull.State, pull.Message)
	}
	return nil
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
