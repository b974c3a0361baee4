package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	v1 "berth/api/v1"
)

func newTokenCommand(c *connector) *cobra.Command {
	return withSubcommands(&cobra.Command{Use: "token", Short: "Create, list and revoke access tokens",
		Example: "  berth token create --ttl 8h --scope read\n  berth token list"},
		newTokenCreate(c), newTokenList(c), newTokenRevoke(c))
}

func newTokenCreate(c *connector) *cobra.Command {
	var request v1.TokenRequest
	var scopes, keyFiles []string
	cmd := c.command(withoutNames(&cobra.Command{
		Use:   "create",
		Short: "Create a token and print it",
		Long: "Create a token and print it on standard output. It is not shown again. Its expiry is printed on standard\n" +
			"error. Scopes are read, power, console, files, network and admin.",
		Example: "  BERTH_TOKEN=$(berth token create --ttl 8h --scope read --scope power --container survival)\n" +
			"  berth token create --ttl 30d --scope files --container survival --ssh-key ~/.ssh/id_ed25519.pub",
	}), func(cmd *cobra.Command, d *daemon, _ []string) error {
		for _, s := range scopes {
			request.Scopes = append(request.Scopes, v1.Scope(s))
		}
		var err error
		if request.SSHKeys, err = readKeys(keyFiles); err != nil {
			return err
		}
		token, err := d.Tokens().Create(cmd.Context(), request)
		if err != nil {
			return err
		}
		if isText(cmd) {
			fmt.Fprintln(cmd.ErrOrStderr(), "expires at "+dateOf(token.ExpiresAt))
		}
		return printDone(cmd, d.raw, "", "%s", token.Token)
	})
	flags := cmd.Flags()
	flags.StringVar(&request.Name, "name", "", "a name that events and the audit log show")
	flags.Func("ttl", "how long the token is valid, such as 90s, 8h or 7d (default 1h)", func(text string) error {
		request.TTL = &text
		_, err := v1.ParseDuration(text)
		return err
	})
	flags.StringSliceVar(&scopes, "scope", nil, "an operation that it allows; can be repeated (default all)")
	flags.StringSliceVar(&request.Containers, "container", nil, "a container that it is limited to; can be repeated (default all)")
	flags.BoolVar(&request.RemoveOnUse, "single-use", false, "make it valid for exactly one request")
	flags.StringVar(&request.OnBehalfOf, "on-behalf-of", "", "the user for whom it acts, which events and the audit log show")
	flags.StringVar(&request.Address, "address", "", "the address of that user's client, which they show instead of that of the connection")
	flags.StringArrayVar(&keyFiles, "ssh-key", nil, "a file of public keys that may log in with SFTP; can be repeated")
	complete(cmd, "scope", func(*cobra.Command) []cobra.Completion {
		return names(v1.Scopes(), func(s v1.Scope) string { return string(s) })
	})
	return cmd
}

// readKeys returns the keys in files such as ~/.ssh/id_ed25519.pub, without comments and
// empty lines.
func readKeys(files []string) (keys []string, err error) {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--ssh-key: %w", err)
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				keys = append(keys, line)
			}
		}
	}
	return keys, nil
}

func newTokenList(c *connector) *cobra.Command {
	return c.listCommand(&cobra.Command{
		Use:     "list",
		Short:   "List the tokens, without their secrets",
		Example: "  berth token list",
	}, func(cmd *cobra.Command, d *daemon, _ []string) (listing, error) {
		tokens, err := d.Tokens().List(cmd.Context())
		return listOf(d, tokens, func(k v1.TokenView) string { return k.ID },
			[]string{"TOKEN", "NAME", "SCOPES", "CONTAINERS", "EXPIRES", "PARENT*", "SSH KEYS*"},
			func(k v1.TokenView) []string {
				scopes := names(k.Scopes, func(s v1.Scope) string { return string(s) })
				return []string{k.ID, k.Name, strings.Join(scopes, ","), strings.Join(k.Containers, ","), dateOf(k.ExpiresAt),
					string(k.Parent), strings.Join(k.SSHKeys, ",")}
			}).or("There are no tokens but that of the configuration."), err
	})
}

func newTokenRevoke(c *connector) *cobra.Command {
	return c.deleteCommand(&cobra.Command{
		Use:     "revoke <id>...",
		Short:   "Revoke tokens by their ids, as shown by list",
		Example: "  berth token revoke 0f1e2d3c4b5a69788796a5b4c3d2e1f0",
	}, "revoked", func(ctx context.Context, d *daemon, id string) error { return d.Tokens().Revoke(ctx, id) })
}
