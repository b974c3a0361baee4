package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	v1 "berth/api/v1"
	"berth/cmd/berth/config"
	"berth/cmd/berth/doctor"
)

func newDoctorCommand(c *connector, version string) *cobra.Command {
	var bundle, log string
	cmd := withoutNames(&cobra.Command{
		Use:   "doctor",
		Short: "Check this host and its daemon, and name remedies",
		Long: "Check the configuration, certificate, daemon, store, disks, engine, kernel, firewall, clock and panel.\n" +
			"Each check is ok, warn or fail, and names what to do. It works whether or not the daemon runs, and changes\n" +
			"nothing; the panel receives a HEAD request with the token. Run it as root, as the daemon runs. The command\n" +
			"fails if a check does.\n\n" +
			"With --bundle it also writes a tar.gz for a bug report: the results, the configuration, the engine's\n" +
			"description, the end of the log, and of a running daemon its metrics and newest events. Tokens, passwords\n" +
			"and the values of containers' variables of 6 characters or more are replaced by ***.",
		Example: "  berth doctor\n  berth doctor -o json | jq '.results[] | select(.status != \"ok\")'\n  berth doctor --bundle berth.tar.gz",
		Args:    cobra.NoArgs,
	})
	checkedFlag(cmd, &c.url, "url", "`URL` of the daemon (default $"+envURL+", else from the configuration)", checkURL)
	cmd.Flags().StringVar(&bundle, "bundle", "", "also write a tar.gz for a bug report, without secrets, to this new file")
	cmd.Flags().StringVar(&log, "log", "", "the daemon's log for the bundle (default: the journal of berth.service)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o := doctorOptions(c, version)
		r := doctor.Run(cmd.Context(), o)
		if err := answer(cmd, r, doctorText(r)); err != nil {
			return err
		}
		if bundle != "" {
			if err := writeBundle(cmd.Context(), bundle, o, r, log); err != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "wrote "+bundle)
		}
		if r.Status == doctor.Fail {
			return ErrReported
		}
		return nil
	}
	return cmd
}

// doctorOptions returns what is known of the daemon. Without a configuration, the
// defaults are checked.
func doctorOptions(c *connector, version string) doctor.Options {
	loaded, err := c.loader.Load()
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		loaded = config.Loaded{Config: v1.Defaults(), Path: c.loader.Path()}
		loaded.Config.Storage.DataPath = c.loader.DataPath()
		loaded.Config.Complete()
	}
	o := doctor.Options{Version: version, Config: loaded, Invalid: err}
	if d, err := c.connectHost(); err == nil {
		o.Daemon = d.Client
	}
	return o
}

// doctorText returns a report with one line for each check, and one for each remedy.
func doctorText(r doctor.Report) string {
	var b strings.Builder
	counts := map[doctor.Status]int{}
	for _, result := range r.Results {
		counts[result.Status]++
		fmt.Fprintf(&b, "%-4s  %-14s  %s\n", result.Status, result.Check, printable(result.Message))
		if result.Remedy != "" {
			fmt.Fprintf(&b, "%22s-> %s\n", "", printable(result.Remedy))
		}
	}
	fmt.Fprintf(&b, "%d checks: %d ok, %d warn, %d fail", len(r.Results), counts[doctor.OK], counts[doctor.Warn], counts[doctor.Fail])
	return b.String()
}

// writeBundle writes a bundle to a new file, or no file.
func writeBundle(ctx context.Context, path string, o doctor.Options, r doctor.Report, log string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	err = errors.Join(doctor.Bundle(ctx, f, o, r, log), f.Close())
	if err != nil {
		return fmt.Errorf("bundle: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}
