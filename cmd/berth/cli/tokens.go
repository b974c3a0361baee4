package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
)

func newTokenCommand(c *connector) *cobra.Command {
	return withSubcommands(&cobra.Command{Use: "token", Short: "Create, list and revoke access tokens"},
		newTokenCreate(c), newTokenList(c), newTokenRevoke(c))
}

func newTokenCreate(c *connector) *cobra.Command {
	var request struct {
		TTL        string   `json:"ttl,omitempty"`
		SingleUse  bool     `json:"remove_on_use"`
		Scopes     []string `json:"scopes,omitempty"`
		Containers []string `json:"containers,omitempty"`
	}
	cmd := c.command(&cobra.Command{
		Use:   "create",
		Short: "Create a token, and print it",
		Long: "Create a token, and print it on standard output: it is shown this once. Its end goes to standard error.\n" +
			"Scopes are read, power, console, files, network and admin.",
		Example: "  BERTH_TOKEN=$(berth token create --ttl 8h --scope read --scope power --container survival)",
	}, func(cmd *cobra.Command, api *client, _ []string) error {
		var body struct {
			Token     string `json:"token"`
			ExpiresAt string `json:"expires_at"`
		}
		raw, err := api.call(cmd.Context(), http.MethodPost, "/auth/tokens", request, &body)
		if err != nil {
			return err
		}
		if !asJSON(cmd) {
			fmt.Fprintln(cmd.ErrOrStderr(), "expires at "+body.ExpiresAt)
		}
		return printLine(cmd, raw, "%s", body.Token)
	})
	flags := cmd.Flags()
	flags.StringVar(&request.TTL, "ttl", "", "how long it lives, such as 90s, 8h or 7d (default 1h)")
	flags.StringSliceVar(&request.Scopes, "scope", nil, "what it may do; can be repeated (default everything)")
	flags.StringSliceVar(&request.Containers, "container", nil, "the only container it is for; can be repeated (default all)")
	flags.BoolVar(&request.SingleUse, "single-use", false, "one request spends it")
	return cmd
}

func newTokenList(c *connector) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "list",
		Short:   "List the tokens, without their secrets",
		Example: "  berth token list",
	}, func(cmd *cobra.Command, api *client, _ []string) error {
		var body struct {
			Tokens []struct {
				ID         string   `json:"id"`
				Scopes     []string `json:"scopes"`
				Containers []string `json:"containers"`
				ExpiresAt  string   `json:"expires_at"`
			}
		}
		raw, err := api.get(cmd.Context(), "/auth/tokens", &body)
		if err != nil {
			return err
		}
		return show(cmd, raw, func(t *table) {
			t.row("TOKEN", "SCOPES", "CONTAINERS", "EXPIRES")
			for _, k := range body.Tokens {
				t.row(k.ID, strings.Join(k.Scopes, ","), strings.Join(k.Containers, ","), k.ExpiresAt)
			}
		})
	})
}

func newTokenRevoke(c *connector) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "revoke <id>",
		Short:   "Revoke a token by the id that list shows",
		Example: "  berth token revoke 0f1e2d3c4b5a69788796a5b4c3d2e1f0",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, api *client, args []string) error {
		raw, err := api.call(cmd.Context(), http.MethodDelete, "/auth/tokens/"+url.PathEscape(args[0]), nil, nil)
		if err != nil {
			return err
		}
		return printLine(cmd, raw, "%s: revoked", args[0])
	})
}
