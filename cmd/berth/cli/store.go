package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"berth/api/client"
)

// storeRestorer replaces the store of a data directory by a backup.
type storeRestorer func(dataPath string, backup *os.File) (kept string, err error)

func newStoreCommand(c *connector, restore storeRestorer) *cobra.Command {
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
		size, err := saveStore(cmd, d, args[0])
		if err != nil {
			return err
		}
		raw, err := json.Marshal(map[string]any{"file": args[0], "size": size})
		if err != nil {
			return err
		}
		return printDone(cmd, raw, args[0], "%s: %s", args[0], units.BytesSize(float64(size)))
	}))
}

// saveStore writes a backup of the daemon's store to a file, in one step.
func saveStore(cmd *cobra.Command, d *daemon, name string) (size int64, err error) {
	content, err := client.BackupsOf(d.Client).Store(cmd.Context())
	if err != nil {
		return 0, err
	}
	defer content.Close()
	f, err := os.CreateTemp(filepath.Dir(name), ".berth-store-") // mode 0600
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	size, err = io.Copy(f, content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	return size, os.Rename(f.Name(), name)
}

func newStoreRestore(c *connector, restore storeRestorer) *cobra.Command {
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
		raw, err := json.Marshal(map[string]string{"data_path": path, "kept": kept})
		if err != nil {
			return err
		}
		text := fmt.Sprintf("%s: the store is restored", path)
		if kept != "" {
			text += "; the one before is " + kept
		}
		return printDone(cmd, raw, path, "%s", text)
	}
	return cmd
}
