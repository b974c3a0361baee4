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
	c.addURLFlag(cmd, "the configuration")
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

func newStoreCommand(c *connector, restore func(dataPath string, backup *os.File) (kept string, err error)) *cobra.Command {
	return withSubcommands(&cobra.Command{
		Use:   "store",
		Short: "Back up and restore the daemon's own store",
		Long: "Back up and restore the daemon's own store: containers, ports, tokens, transitions and the audit log. The files\n" +
			"of volumes are not in it; see berth backup.",
		Example: "  berth store backup /mnt/usb/berth.store\n  berth store restore /mnt/usb/berth.store",
	}, newStoreBackup(c), newStoreRestore(c, restore))
}

func newStoreBackup(c *connector) *cobra.Command {
	return withoutNames(c.command(&cobra.Command{
		Use:   "backup <file>",
		Short: "Back up the daemon's store while everything runs",
		Long: "Back up the daemon's store while everything runs. The file appears under its name when it is complete. It contains\n" +
			"the variables of containers: keep it as a secret.",
		Example: "  berth store backup /mnt/usb/berth.store",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		content, err := d.Client.Backups().Store(cmd.Context())
		if err != nil {
			return err
		}
		defer content.Close()
		size, err := saveFile(args[0], content)
		if err != nil {
			return err
		}
		return answer(cmd, map[string]any{"file": args[0], "size": size}, args[0]+": "+bytesText(size))
	}))
}

func newStoreRestore(c *connector, restore func(dataPath string, backup *os.File) (kept string, err error)) *cobra.Command {
	cmd := withoutNames(&cobra.Command{
		Use:   "restore <file>",
		Short: "Replace the store of a stopped daemon by a backup",
		Long: "Replace the store of a stopped daemon by a backup; its containers run on. The store before is kept beside it. What\n" +
			"was requested after the backup is forgotten; containers that are newer are kept and named in the log, and the\n" +
			"epoch of the events changes. If the file is damaged, nothing is changed.",
		Example: "  systemctl stop berth && berth store restore /mnt/usb/berth.store && systemctl start berth",
		Args:    cobra.ExactArgs(1),
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		loaded, err := c.loader.Load()
		if err != nil {
			return c.loader.WithPath(err)
		}
		f, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer f.Close()
		path := loaded.Config.Storage.DataPath
		kept, err := restore(path, f)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		text := fmt.Sprintf("%s: the store is restored", path)
		if kept != "" {
			text += "; the one before is " + kept
		}
		return answer(cmd, map[string]string{"data_path": path, "kept": kept}, text)
	}
	return cmd
}

func newFirewallCommand(c *connector, remove func(ctx context.Context, dataPath string) (changed bool, err error)) *cobra.Command {
	return withSubcommands(&cobra.Command{
		Use:     "firewall",
		Short:   "Remove the daemon's firewall rules from this host",
		Example: "  berth firewall clean",
	}, newFirewallClean(c, remove))
}

func newFirewallClean(c *connector, remove func(ctx context.Context, dataPath string) (changed bool, err error)) *cobra.Command {
	cmd := withoutNames(&cobra.Command{
		Use:   "clean",
		Short: "Remove the rules of a stopped daemon",
		Long: "Remove the firewall rules of a stopped daemon: those that open the ports of its pool, and those that keep its\n" +
			"containers from the host. Containers that still run are no longer kept from it. The daemon adds its rules again\n" +
			"when it starts.",
		Example: "  systemctl stop berth && berth firewall clean",
		Args:    cobra.NoArgs,
	})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		loaded, err := c.loader.Load()
		if err != nil {
			return c.loader.WithPath(err)
		}
		changed, err := remove(cmd.Context(), loaded.Config.Storage.DataPath)
		if err != nil {
			return err
		}
		text := "there are no firewall rules of this daemon"
		if changed {
			text = "the firewall rules are removed"
		}
		return answer(cmd, map[string]bool{"changed": changed}, text)
	}
	return cmd
}
