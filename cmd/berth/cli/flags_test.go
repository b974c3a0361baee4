package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFlagErrors name the flag, what was given and what it takes.
func TestFlagErrors(t *testing.T) {
	for args, want := range map[string]string{
		"completion foo":                          `there is no completion for "foo": the shells are bash, fish, powershell, zsh`,
		"volumes --url foo":                       `--url: "foo" is not a URL such as http://127.0.0.1:8070`,
		"doctor --url foo":                        `--url: "foo" is not a URL such as http://127.0.0.1:8070`,
		"volumes --url http://127.0.0.1:22222222": `--url: "http://127.0.0.1:22222222" is not a URL such as http://127.0.0.1:8070: its port 22222222 is not in 1 to 65535`,
		"token create --ttl 5x":                   `--ttl: "5x" is not a duration such as 90s, 1h30m or 7d`,
		"backup policy set a --keep 1 --every x":  `--every: "x" is not a duration such as 90s, 1h30m or 7d`,
		"volumes create --size-limit x":           `--size-limit: "x" is not a size such as 512KiB, 1MiB or 10GiB`,
		"volumes create -l x":                     `--label: "x" must be name=value`,
		"events --follow=maybe":                   `--follow: "maybe" must be true or false`,
		"wait mc running --timeout 5":             `--timeout: "5" must be a duration such as 90s, 5m or 1h30m`,
		"events --type foo":                       `--type: "foo" is not one of event, daemon_message, backup, restore, pull`,
		"events -n many":                          `--last: "many" must be a whole number`,
		"events --since 9999999999999999999":      `--since: "9999999999999999999" is too large`,
		"events -n 1 --since 1":                   `give either --last or --since, not both`,
		"events --container":                      `--container needs a value: only transitions of this container`,
		"apply":                                   `--file is missing: `,
		"config check --reconcile.workers many":   `--reconcile.workers: "many" must be a whole number`,
	} {
		_, _, err := command(t, nil, strings.Fields(args)...)
		require.ErrorContains(t, err, want, args)
		require.Equal(t, exitUsage, ExitCode(err), args)
		for _, raw := range []string{"strconv", "flag(s)", "in the group", "time: "} {
			require.NotContains(t, err.Error(), raw, args)
		}
	}
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		out, _, err := command(t, nil, "completion", shell)
		require.NoError(t, err)
		require.Contains(t, out, "berth", shell)
	}
	out, _, err := command(t, nil, "completion")
	require.NoError(t, err)
	require.Contains(t, out, "powershell")
}
