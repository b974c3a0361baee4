package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// addCompletionCommand adds cobra's command that prints the completion script of a
// shell. An unknown shell is an error of usage, where cobra prints the help.
func addCompletionCommand(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		shells := names(cmd.Commands(), func(shell *cobra.Command) string { return shell.Name() })
		cmd.RunE, cmd.Args = help, func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return fmt.Errorf("there is no completion for %q: the shells are %s", args[0], strings.Join(shells, ", "))
		}
		for _, shell := range cmd.Commands() {
			shell.Example = "  berth completion " + shell.Name()
			shell.RunE = printScript
		}
	}
}

// printScript prints the completion script of the shell that cmd is named after. Cobra's
// own function writes to the output at the time of its creation.
func printScript(cmd *cobra.Command, _ []string) error {
	bare, err := cmd.Flags().GetBool("no-descriptions")
	if err != nil {
		return err
	}
	root := cmd.Root()
	write := map[string]func(io.Writer) error{
		"bash":       func(out io.Writer) error { return root.GenBashCompletionV2(out, !bare) },
		"zsh":        root.GenZshCompletion,
		"fish":       func(out io.Writer) error { return root.GenFishCompletion(out, !bare) },
		"powershell": root.GenPowerShellCompletionWithDesc,
	}
	if bare {
		write["zsh"], write["powershell"] = root.GenZshCompletionNoDesc, root.GenPowerShellCompletion
	}
	return write[cmd.Name()](cmd.OutOrStdout())
}
