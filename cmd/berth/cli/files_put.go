package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

func newFilesPut(c *connector) *cobra.Command {
	cmd := withoutNames(c.command(&cobra.Command{
		Use:   "put <local> <id>:[path]",
		Short: "Copy a file or folder of this host to a volume",
		Long: "Copy a file, or a folder with everything in it, to a volume. If the path is empty or ends with a slash,\n" +
			"the copy is made in that folder, else it is the new name. Standard input is -. Existing files are\n" +
			"replaced, each when its copy is complete; missing folders are created.\n\n" +
			"Executable files become executable (0755). Links in a folder are left out, and reported.\n\n" + filesHelp,
		Example: "  berth files put server.properties survival:\n  berth files put plugins survival:\n" +
			"  tar -cz world | berth files put - survival:world.tar.gz",
		Args: cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		a, volume, err := resolve(cmd, d, args[1])
		if err != nil {
			return err
		}
		return put(cmd, d, volume, args[0], a)
	}))
	cmd.ValidArgsFunction = c.completeFiles(0)
	return cmd
}

// put copies a local file or folder to a volume.
func put(cmd *cobra.Command, d *daemon, volume, local string, a address) error {
	if local == "-" {
		if a.folder {
			return withCode(exitUsage, fmt.Errorf("%s: name the file that standard input is written to", a))
		}
		t := newTransfer(cmd, d, volume, -1)
		defer t.progress.close()
		if err := t.upload(cmd.InOrStdin(), -1, a); err != nil {
			return err
		}
		return t.report("standard input", a.String())
	}
	info, err := os.Stat(local)
	if err != nil {
		return err
	}
	if a.folder {
		name, err := filepath.Abs(local) // the name of . is that of the working directory
		if err != nil {
			return err
		}
		a = a.join(filepath.Base(name))
	}
	real, err := filepath.EvalSymlinks(local) // a link that the user names is followed
	if err != nil {
		return err
	}
	dir, name := filepath.Split(real)
	if info.IsDir() {
		dir, name = real, "."
	}
	root, err := os.OpenRoot(cmp.Or(dir, "."))
	if err != nil {
		return err
	}
	defer root.Close()
	total, err := sizeBelow(cmd.Context(), root, name)
	if err != nil {
		return err
	}
	t := newTransfer(cmd, d, volume, total)
	defer t.progress.close()
	if !info.IsDir() {
		err = t.putFile(root, name, a)
	} else {
		err = t.putFolder(root, a)
	}
	if err != nil {
		return err
	}
	return t.report(local, a.String())
}

// sizeBelow returns the total size of the regular files at and below a path, in bytes.
func sizeBelow(ctx context.Context, root *os.Root, name string) (total int64, err error) {
	err = fs.WalkDir(root.FS(), name, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return ctx.Err() // putFolder reports what cannot be read
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return nil
	})
	return total, err
}

// putFolder copies everything below root to the folder a.
func (t *transfer) putFolder(root *os.Root, a address) error {
	return fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			err = fmt.Errorf("%w %s: %w", errLocal, name, err)
		case e.Type()&fs.ModeSymlink != 0:
			t.links++
		case e.IsDir() && a.join(name).path != "":
			err = t.retry(func() error { return t.d.Files().Mkdir(t.ctx(), t.volume, a.join(name).path) })
		case !e.IsDir():
			err = t.retry(func() error { return t.putFile(root, name, a.join(name)) })
		}
		if err == nil {
			return nil
		}
		if err := t.skip(fmt.Errorf("%s: %w", a.join(name), err)); err != nil {
			return err
		}
		if e != nil && e.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
}

// putFile copies a regular file below root. Opening it never waits for the writer of a
// named pipe, and never leaves root through a link.
func (t *transfer) putFile(root *os.Root, name string, a address) error {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("%w: %w", errLocal, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w %s: it is not a regular file", errLocal, name)
	}
	if err := t.upload(io.LimitReader(file, info.Size()), info.Size(), a); err != nil {
		return err
	}
	if info.Mode()&0o111 == 0 {
		return nil
	}
	return t.d.Files().Chmod(t.ctx(), t.volume, a.path, "0755")
}

func (t *transfer) upload(content io.Reader, size int64, a address) error {
	err := t.d.Files().Upload(t.ctx(), t.volume, a.path, t.progress.file(path.Base(a.path), content), size)
	if err != nil {
		return fmt.Errorf("%s: %w", a, err)
	}
	t.files++
	return nil
}
