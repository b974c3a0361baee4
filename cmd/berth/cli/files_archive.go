package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"berth/api/client"
)

// putArchive extracts a local archive into the folder a.
func putArchive(cmd *cobra.Command, d *daemon, volume, local string, a address) error {
	archive, size := cmd.InOrStdin(), int64(-1)
	if local != "-" {
		file, err := os.Open(local)
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		if info.IsDir() {
			return withCode(exitUsage, fmt.Errorf("%s is a folder: --extract takes an archive", local))
		}
		if archive = file; info.Mode().IsRegular() {
			archive, size = io.LimitReader(file, info.Size()), info.Size()
		}
	}
	t := &transfer{cmd: cmd, d: d, volume: volume}
	got, err := d.Files().Extract(cmd.Context(), volume, a.path, io.TeeReader(archive, t), client.ExtractOptions{Size: size})
	if err != nil {
		return fmt.Errorf("%s: %w", a, err)
	}
	for _, skipped := range got.Skipped {
		if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "berth: %s: left out (%s)\n", printable(skipped.Path), skipped.Reason); err != nil {
			return err
		}
	}
	result := extracted{local, a.String(), t.bytes, got.SkippedTotal}
	text := fmt.Sprintf("extracted %s into %s: %s", local, a, bytesText(t.bytes))
	if got.SkippedTotal > 0 {
		text += fmt.Sprintf("; %d left out", got.SkippedTotal)
	}
	return answer(cmd, result, printable(text))
}

// extracted is the result of an archive that was sent.
type extracted struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Bytes   int64  `json:"bytes"`   // of the archive
	Skipped int    `json:"skipped"` // entries that were left out
}

// getArchive writes a folder as a tar to standard output.
func getArchive(cmd *cobra.Command, d *daemon, volume string, a address) error {
	content, err := d.Files().Archive(cmd.Context(), volume, a.path, client.ArchiveOptions{Format: "tar"})
	if err == nil {
		defer content.Close()
		_, err = io.Copy(cmd.OutOrStdout(), content)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", a, err)
	}
	return nil
}
