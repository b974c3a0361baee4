package cli

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"
)

// ruleRemover removes the firewall rules of the store in a data directory from this host.
type ruleRemover func(ctx context.Context, dataPath string) (changed bool, err error)

func newFirewallCommand(c *connector, remove ruleRemover) *cobra.Command {
	return withSubcommands(&cobra.Command{
		Use:     "firewall",
		Short:   "Remove the daemon's firewall rules from this host",
		Example: "  berth firewall clean",
	}, newFirewallClean(c, remove))
}

func newFirewallClean(c *connector, remove ruleRemover) *cobra.Command {
	cmd := withoutNames(&cobra.Command{
		Use:   "clean",
		Short: "Remove the rules of a stopped daemon",
		Long: "Remove the firewall rules of a stopped daemon: those that open the ports of its pool, and those that keep its\n" +
			"containers from the host. Containers that still run are no longer kept from it. The daemon adds its rules again\n" +
			"when it starts.",
		Example: "  systemctl stop berth && berth firewall clean",
		Args:    cobra.NoArgs,
	})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		loaded, err := c.loader.Load()
		if err != nil {
			return c.loader.WithPath(err)
		}
		changed, err := remove(cmd.Context(), loaded.Config.Storage.DataPath)
		if err != nil {
			return err
		}
		raw, err := json.Marshal(map[string]bool{"changed": changed})
		if err != nil {
			return err
		}
		if changed {
			return printDone(cmd, raw, "", "the firewall rules are removed")
		}
		return printDone(cmd, raw, "", "there are no firewall rules of this daemon")
	}
	return cmd
}
