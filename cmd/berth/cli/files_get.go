package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

// maxResumes bounds how often a broken download is continued.
const maxResumes = 10

func newFilesGet(c *connector) *cobra.Command {
	var raw bool
	cmd := withoutNames(c.command(&cobra.Command{
		Use:   "get <id>:<path> [local]",
		Short: "Copy a file or folder from a volume to this host",
		Long: "Copy a file, or a folder with everything in it, from a volume to this host (default: the working\n" +
			"directory). If local is a directory or ends with a slash, the copy is made in it, else it is the\n" +
			"new name; - is standard output. Existing files are replaced, each when its copy is complete.\n\n" +
			"A download that breaks off is continued; one that fails leaves no file behind. Nothing is written\n" +
			"outside the local directory. Links in a folder are left out, and reported.\n\n" + filesHelp,
		Example: "  berth files get survival:server.properties\n  berth files get survival:world backup/\n" +
			"  berth files get survival:backup.tar.gz - | tar -tz",
		Args: cobra.RangeArgs(1, 2),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		a, volume, err := resolve(cmd, d, args[0])
		if err != nil {
			return err
		}
		local := "."
		if len(args) == 2 {
			local = args[1]
		}
		return get(cmd, d, volume, a, local, raw)
	}))
	cmd.Flags().BoolVar(&raw, "raw", false, "write control characters to a terminal unescaped")
	cmd.ValidArgsFunction = c.completeFiles(1)
	return cmd
}

// get copies a file or folder of a volume to a local path.
func get(cmd *cobra.Command, d *daemon, volume string, a address, local string, raw bool) error {
	entry, err := stat(cmd.Context(), d, volume, a)
	if err != nil {
		return err
	}
	folder := entry.Type == v1.TypeDirectory || entry.Symlink && a.folder
	if local == "-" {
		if folder {
			return withCode(exitUsage, fmt.Errorf("%s is a folder: only a file can be written to standard output", a))
		}
		out := cmd.OutOrStdout()
		if raw {
			out = unfiltered(out)
		}
		return fetch(cmd.Context(), d, volume, a, out, newProgress(io.Discard, -1))
	}
	dir, name := localTarget(local, path.Base(a.path), a.path == "")
	if err := os.MkdirAll(dir, 0o777); err != nil { // the umask applies
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	total := int64(-1)
	if !folder {
		total = entry.Size
	}
	t := newTransfer(cmd, d, volume, total)
	defer t.progress.close()
	if folder {
		err = t.getFolder(a, root, name)
	} else {
		err = t.getFile(a, root, name, entry)
	}
	if err != nil {
		return err
	}
	return t.report(a.String(), filepath.Join(dir, name))
}

// localTarget returns the directory and the name of a copy. The copy of a volume's
// root is the directory itself.
func localTarget(local, name string, whole bool) (dir, as string) {
	if whole {
		return local, "."
	}
	info, err := os.Stat(local)
	if strings.HasSuffix(local, "/") || err == nil && info.IsDir() {
		return local, name
	}
	return filepath.Dir(local), filepath.Base(local)
}

// getFolder copies everything below a folder to a directory of root. It holds the list
// of one folder in memory, and the paths of those that wait.
func (t *transfer) getFolder(a address, root *os.Root, name string) error {
	if err := root.MkdirAll(name, 0o777); err != nil {
		return err
	}
	base, err := root.OpenRoot(name)
	if err != nil {
		return err
	}
	defer base.Close()
	for waiting := []string{"."}; len(waiting) > 0; {
		folder := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		var list []v1.FileEntry
		err := t.retry(func() (err error) {
			list, err = t.d.Files().List(t.ctx(), t.volume, a.join(folder).path)
			return err
		})
		if err != nil {
			err = fmt.Errorf("%s: %w", a.join(folder), err)
		}
		if err := t.skip(err); err != nil {
			return err
		}
		for _, e := range list {
			below, err := t.getEntry(a, base, folder, e)
			if err := t.skip(err); err != nil {
				return err
			}
			if below != "" {
				waiting = append(waiting, below)
			}
		}
	}
	return nil
}

// getEntry copies one entry of a folder below a. It returns the path of a folder, whose
// content has to be copied.
func (t *transfer) getEntry(a address, base *os.Root, folder string, e v1.FileEntry) (below string, err error) {
	name := path.Join(folder, e.Name)
	switch {
	case e.Name == "" || e.Name == "." || e.Name == ".." || strings.ContainsAny(e.Name, "/\\\x00"):
		return "", fmt.Errorf("%w %q in %s: the name is not that of a file", errLocal, e.Name, a.join(folder))
	case e.Symlink:
		t.links++
		return "", nil
	case e.Type == v1.TypeDirectory:
		if err := base.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("%w %s: %w", errLocal, a.join(name), err)
		}
		return name, nil
	}
	return "", t.retry(func() error { return t.getFile(a.join(name), base, name, e) })
}

// getFile copies a file to a name below root, which it gets when it is complete.
func (t *transfer) getFile(a address, root *os.Root, name string, e v1.FileEntry) error {
	mode, err := strconv.ParseUint(e.Mode, 8, 16)
	if err != nil || e.Symlink {
		mode = 0o644
	}
	part := path.Join(path.Dir(name), ".berth-"+uuid.NewString()+".part")
	file, err := root.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fs.FileMode(mode)&0o777|0o600)
	if err != nil {
		return err
	}
	err = fetch(t.ctx(), t.d, t.volume, a, file, t.progress)
	err = cmp.Or(err, file.Close())
	if err == nil {
		err = root.Rename(part, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(part))
	}
	t.files++
	return nil
}

// fetch writes the content of a file to out. It continues a download that breaks off, as
// long as the file is the same.
func fetch(ctx context.Context, d *daemon, volume string, a address, out io.Writer, p *progress) error {
	var o client.ContentOptions
	for range maxResumes {
		content, err := d.Files().Download(ctx, volume, a.path, o)
		if err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		received := &reader{from: p.file(a.path, content)}
		n, err := io.Copy(out, received)
		_ = content.Close()
		if err == nil {
			return nil
		}
		if received.err == nil || n == 0 || ctx.Err() != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		o = client.ContentOptions{Offset: o.Offset + n, ETag: content.ETag}
	}
	return fmt.Errorf("%s: the connection broke off %d times: %w", a, maxResumes, io.ErrUnexpectedEOF)
}

// reader records the error of a source.
type reader struct {
	from io.Reader
	err  error
}

// Read reads from the source.
func (r *reader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}
