package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFlagErrors name the flag, what was given and what it takes.
func TestFlagErrors(t *testing.T) {
	for args, want := range map[string]string{
		"volumes --url foo":                       `"--url" flag: "foo" is not a URL such as http://127.0.0.1:8070`,
		"doctor --url foo":                        `"--url" flag: "foo" is not a URL such as http://127.0.0.1:8070`,
		"volumes --url http://127.0.0.1:22222222": `"http://127.0.0.1:22222222" is not a URL such as http://127.0.0.1:8070: its port 22222222 is not in 1 to 65535`,
		"token create --ttl 5x":                   `"--ttl" flag: "5x" is not a duration such as 90s, 1h30m or 7d`,
		"backup policy set a --keep 1 --every x":  `"--every" flag: "x" is not a duration such as 90s, 1h30m or 7d`,
		"volumes create --size-limit x":           `"--size-limit" flag: "x" is not a size such as 512KiB, 1MiB or 10GiB`,
		"volumes create -l x":                     `"x" for "-l, --label" flag`,
		"events --follow=maybe":                   `"maybe" for "-f, --follow" flag`,
		"wait mc running --timeout 5":             `"5" for "--timeout" flag`,
		"events --type foo":                       `"--type" flag: "foo" is not one of event, daemon_message, backup, restore, pull`,
		"events -n many":                          `"many" for "-n, --last" flag`,
		"events -n 1 --since 1":                   `[last since]`,
		"events --container":                      `--container`,
		"apply":                                   `"file"`,
		"config check --reconcile.workers many":   `"--reconcile.workers" flag: must be a whole number`,
	} {
		_, _, err := command(t, nil, strings.Fields(args)...)
		require.ErrorContains(t, err, want, args)
		require.Equal(t, exitUsage, ExitCode(err), args)
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
