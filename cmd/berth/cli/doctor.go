package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	v1 "berth/api/v1"
	"berth/cmd/berth/config"
	"berth/cmd/berth/doctor"
)

func newDoctorCommand(c *connector, version string) *cobra.Command {
	cmd := withoutNames(&cobra.Command{
		Use:   "doctor",
		Short: "Check this host and its daemon, and name remedies",
		Long: "Check the configuration, certificate, daemon, store, disks, engine, kernel, firewall, clock and panel.\n" +
			"Each check is ok, warn or fail, and names what to do. It works whether or not the daemon runs, and changes\n" +
			"nothing; the panel receives a HEAD request with the token. Run it as root, as the daemon runs. The command\n" +
			"fails if a check does. For a bug report attach the output with -o json, and the daemon's log.",
		Example: "  berth doctor\n  berth doctor -o json | jq '.results[] | select(.status != \"ok\")'",
		Args:    cobra.NoArgs,
	})
	checkedFlag(cmd, &c.url, "url", "`URL` of the daemon (default $"+envURL+", else from the configuration)", checkURL)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		r := doctor.Run(cmd.Context(), doctorOptions(c, version))
		if err := answer(cmd, r, doctorText(r)); err != nil {
			return err
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
