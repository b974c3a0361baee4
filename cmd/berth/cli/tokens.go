package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

func newTokenCommand(c *connector) *cobra.Command {
	return withSubcommands(&cobra.Command{Use: "token", Short: "Create, list and revoke access tokens"},
		newTokenCreate(c), newTokenList(c), newTokenRevoke(c))
}

func newTokenCreate(c *connector) *cobra.Command {
	var request client.TokenRequest
	var scopes []string
	cmd := c.command(&cobra.Command{
		Use:   "create",
		Short: "Create a token and print it",
		Long: "Create a token and print it on standard output. It is not shown again. Its expiry is printed on standard\n" +
			"error. Scopes are read, power, console, files, network and admin.",
		Example: "  BERTH_TOKEN=$(berth token create --ttl 8h --scope read --scope power --container survival)",
	}, func(cmd *cobra.Command, d *daemon, _ []string) error {
		for _, s := range scopes {
			request.Scopes = append(request.Scopes, v1.Scope(s))
		}
		token, err := d.Tokens().Create(cmd.Context(), request)
		if err != nil {
			return err
		}
		if !asJSON(cmd) {
			fmt.Fprintln(cmd.ErrOrStderr(), "expires at "+token.ExpiresAt)
		}
		return printLine(cmd, d.raw, "%s", token.Token)
	})
	flags := cmd.Flags()
	flags.StringVar(&request.TTL, "ttl", "", "how long the token is valid, such as 90s, 8h or 7d (default 1h)")
	flags.StringSliceVar(&scopes, "scope", nil, "an operation that it allows; can be repeated (default all)")
	flags.StringSliceVar(&request.Containers, "container", nil, "a container that it is limited to; can be repeated (default all)")
	flags.BoolVar(&request.SingleUse, "single-use", false, "make it valid for exactly one request")
	return cmd
}

func newTokenList(c *connector) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "list",
		Short:   "List the tokens, without their secrets",
		Example: "  berth token list",
	}, func(cmd *cobra.Command, d *daemon, _ []string) error {
		tokens, err := d.Tokens().List(cmd.Context())
		if err != nil {
			return err
		}
		return show(cmd, d.raw, func(t *table) {
			t.row("TOKEN", "SCOPES", "CONTAINERS", "EXPIRES")
			for _, k := range tokens {
				scopes := make([]string, len(k.Scopes))
				for i, s := range k.Scopes {
					scopes[i] = string(s)
				}
				t.row(k.ID, strings.Join(scopes, ","), strings.Join(k.Containers, ","), k.ExpiresAt)
			}
		})
	})
}

func newTokenRevoke(c *connector) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "revoke <id>",
		Short:   "Revoke a token by its id, as shown by list",
		Example: "  berth token revoke 0f1e2d3c4b5a69788796a5b4c3d2e1f0",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		if err := d.Tokens().Revoke(cmd.Context(), args[0]); err != nil {
			return err
		}
		return printLine(cmd, d.raw, "%s: revoked", args[0])
	})
}
