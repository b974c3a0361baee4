package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"berth/cmd/berth/cli"
)

// version is set by the build. Between two releases it has a suffix: 0.1.0-5-g1a2b3c4.
var version = "0.0.0"

// release returns version without its suffix, as the API reports it.
func release() string {
	end := strings.IndexAny(version, "-+")
	if end < 0 {
		return version
	}
	return version[:end]
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := cli.NewRoot(cli.Options{Version: version, Environ: os.Environ(), Serve: serve, RestoreStore: restoreStore,
		RemoveRules: removeRules})
	root.SetOut(cli.Printable(os.Stdout))
	root.SetErr(cli.Printable(os.Stderr))
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return
	}
	reportError(cmd, err)
	os.Exit(cli.ExitCode(err)) //nolint:gocritic // the context ends with the process
}

// reportError prints the error of a command. That of the daemon is a line of its log.
func reportError(cmd *cobra.Command, err error) {
	switch {
	case errors.Is(err, cli.ErrReported), errors.Is(err, cli.ErrInterrupted):
	case cmd.Name() == "serve" && !textLog(logFormat(err), os.Stderr):
		newLog("json", slog.LevelError, os.Stderr).Error("berth ends", "err", err)
	default:
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintln(cmd.ErrOrStderr(), "berth:", strings.TrimSuffix(line, "\n"))
		}
	}
}
