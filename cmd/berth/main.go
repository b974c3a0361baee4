package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the build.
var version = "0.0.0"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := newRootCommand(os.Environ()).ExecuteContext(ctx)
	if err == nil {
		return
	}
	if !errors.Is(err, errReported) {
		fmt.Fprintln(os.Stderr, "berth:", err)
	}
	os.Exit(1) //nolint:gocritic // the context ends with the process
}

func newRootCommand(environ []string) *cobra.Command {
	root := &cobra.Command{
		Use:           "berth",
		Short:         "Runs a hosting panel's containers on this host, and keeps them as the panel wants them",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentFlags().StringP("output", "o", "text", "how to print data: text or json")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]cobra.Completion{"text", "json"}, cobra.ShellCompDirectiveNoFileComp)) // it exists
	root.PersistentPreRunE = checkOutput
	l := newLoader(root, environ)
	root.AddCommand(newServeCommand(l), newConfigCommand(l))
	addClient(root, &cli{loader: l})
	return root
}

// group makes cmd a command that only holds others: alone it tells which there
// are, and a misspelt one is a mistake, which must not look like a success.
func group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(commands...)
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}
