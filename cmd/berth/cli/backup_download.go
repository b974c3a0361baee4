package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

func newBackupDownload(c *connector) *cobra.Command {
	var out string
	cmd := c.command(&cobra.Command{
		Use:   "download <backup>",
		Short: "Download the archive of a backup, a tar.zst",
		Long: "Download the archive of a backup: a tar.zst that GNU tar opens. The file appears under its name when it is complete\n" +
			"and its checksum is correct.",
		Example: "  berth backup download b1e9c2d4-5f6a-4b7c-8d9e-0a1b2c3d4e5f --file /mnt/usb/survival.tar.zst",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		b, err := client.BackupsOf(d.Client).Get(cmd.Context(), args[0])
		if err != nil {
			return fmt.Errorf("%s: %w%s", args[0], err, backupRemedy(err))
		}
		name := out
		if name == "" {
			name = v1.ArchiveKey(filepath.Base(b.BackupID))
		}
		err = downloadBackup(cmd, d, b, name)
		if err != nil {
			return fmt.Errorf("%s: %w%s", args[0], err, backupRemedy(err))
		}
		if name == "-" {
			return nil // standard output has the archive
		}
		raw, err := json.Marshal(map[string]any{"backup_id": b.BackupID, "file": name, "size": b.Size, "checksum": b.Checksum})
		if err != nil {
			return err
		}
		return printDone(cmd, raw, name, "%s: %s, checksum correct", name, units.BytesSize(float64(b.Size)))
	})
	cmd.Flags().StringVar(&out, "file", "", "file to write, - for standard output (default <backup>.tar.zst)")
	return cmd
}

// downloadBackup writes the archive of a backup to a file, in one step.
func downloadBackup(cmd *cobra.Command, d *daemon, b client.Backup, name string) error {
	content, err := client.BackupsOf(d.Client).Download(cmd.Context(), b.BackupID, client.ContentOptions{})
	if err != nil {
		return err
	}
	defer content.Close()
	sum := newChecksum(content)
	if name == "-" {
		if _, err := io.Copy(cmd.OutOrStdout(), sum); err != nil {
			return err
		}
		return sum.check(b)
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".berth-download-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = io.Copy(f, sum)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := sum.check(b); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// checksum reads a stream and computes its SHA-256.
type checksum struct {
	io.Reader
	hash hash.Hash
}

func newChecksum(r io.Reader) checksum {
	h := sha256.New()
	return checksum{io.TeeReader(r, h), h}
}

// check returns an error if what was read is not the archive of a backup.
func (c checksum) check(b client.Backup) error {
	if got := "sha256:" + hex.EncodeToString(c.hash.Sum(nil)); got != b.Checksum {
		return fmt.Errorf("the archive has the checksum %s instead of %s: it was damaged in its target or on the way", got, b.Checksum)
	}
	return nil
}
