package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

func newFilesEdit(c *connector) *cobra.Command {
	return withoutNames(c.command(&cobra.Command{
		Use:   "edit <id>:<path>",
		Short: "Edit a file with $VISUAL or $EDITOR",
		Long: "Edit a file with $VISUAL, else $EDITOR, else vi. When the editor exits, a changed file is written back and\n" +
			"keeps its mode. If the editor fails, nothing is written. If the file in the volume has changed meanwhile,\n" +
			"or cannot be written, the edited text is kept and the error names it.\n\n" + filesHelp,
		Example: "  berth files edit survival:server.properties\n  export EDITOR='code --wait'; berth files edit survival:server.properties",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		a, volume, err := resolvePath(cmd, d, args[0])
		if err != nil {
			return err
		}
		e, err := stat(cmd.Context(), d, volume, a)
		if err != nil {
			return err
		}
		editor := cmp.Or(c.loader.Env("VISUAL"), c.loader.Env("EDITOR"), "vi")
		dir, err := os.MkdirTemp("", "berth-edit-")
		if err != nil {
			return err
		}
		x := &edit{cmd: cmd, d: d, volume: volume, address: a, entry: e, local: filepath.Join(dir, path.Base(a.path))}
		changed, err := x.run(editor)
		if err != nil && x.edited {
			return fmt.Errorf("%w; the edited text is kept in %s", err, x.local)
		}
		err = errors.Join(err, os.RemoveAll(dir))
		switch {
		case err != nil:
			return err
		case !changed:
			return answer(cmd, map[string]any{"file": a.String(), "changed": false}, a.String()+": unchanged")
		}
		return answer(cmd, map[string]any{"file": a.String(), "changed": true}, a.String()+": written")
	}))
}

// edit is a file that is being edited.
type edit struct {
	cmd     *cobra.Command
	d       *daemon
	volume  string
	address address
	entry   v1.FileEntry
	local   string // the copy, in a directory of its own
	edited  bool   // the copy has changes that are not written back
}

// run lets the user edit a copy of the file, and writes it back if it has changed.
func (x *edit) run(editor string) (changed bool, err error) {
	ctx := x.cmd.Context()
	tag, err := x.download(ctx)
	if err != nil {
		return false, err
	}
	before, err := sumOf(x.local)
	if err != nil {
		return false, err
	}
	run := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", x.local)
	run.Stdin, run.Stdout, run.Stderr = x.cmd.InOrStdin(), unfiltered(x.cmd.OutOrStdout()), unfiltered(x.cmd.ErrOrStderr())
	if err := run.Run(); err != nil {
		return false, fmt.Errorf("the editor %s failed: %w", editor, err)
	}
	after, err := sumOf(x.local)
	if err != nil || bytes.Equal(before, after) {
		return false, err
	}
	x.edited = true
	return true, x.writeBack(ctx, tag)
}

// download makes the copy, and returns the tag of its content.
func (x *edit) download(ctx context.Context) (tag string, err error) {
	content, err := x.d.Files().Download(ctx, x.volume, x.address.path, client.ContentOptions{})
	if err != nil {
		return "", fmt.Errorf("%s: %w", x.address, err)
	}
	defer content.Close()
	file, err := os.OpenFile(x.local, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(file, content)
	return content.ETag, errors.Join(err, file.Close())
}

// writeBack replaces the file by the copy unless it is not that of tag any more.
func (x *edit) writeBack(ctx context.Context, tag string) error {
	now, err := x.d.Files().Download(ctx, x.volume, x.address.path, client.ContentOptions{})
	if err != nil {
		return fmt.Errorf("%s: %w", x.address, err)
	}
	_ = now.Close()
	if now.ETag != tag {
		return withCode(exitConflict, fmt.Errorf("%s has changed meanwhile, and is not overwritten", x.address))
	}
	file, err := os.Open(x.local)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := x.d.Files().Upload(ctx, x.volume, x.address.path, file, info.Size()); err != nil {
		return fmt.Errorf("%s: %w", x.address, err)
	}
	x.edited = false
	if x.entry.Symlink || x.entry.Mode == "0644" { // a new file has this mode
		return nil
	}
	return x.d.Files().Chmod(ctx, x.volume, x.address.path, x.entry.Mode)
}

// sumOf returns a checksum of a file.
func sumOf(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	return sum.Sum(nil), err
}
