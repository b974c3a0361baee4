package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	v1 "berth/api/v1"
)

// version is set by the build.
var version = "0.0.0"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRootCommand(os.Environ())
	root.SetOut(printable(os.Stdout))
	root.SetErr(printable(os.Stderr))
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return
	}
	reportError(cmd, err)
	os.Exit(1) //nolint:gocritic // the context ends with the process
}

// reportError writes why a command failed: as a line of the log if it is the daemon.
func reportError(cmd *cobra.Command, err error) {
	switch {
	case errors.Is(err, errReported):
	case cmd.Name() == "serve" && !textLog(logFormat(err), os.Stderr):
		newLog(v1.LogConfig{Format: "json"}, new(slog.LevelVar), os.Stderr).Error("berth ends", "err", err)
	default:
		fmt.Fprintln(cmd.ErrOrStderr(), "berth:", err)
	}
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
