package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

// errLocal is the error of one file of this host.
var errLocal = errors.New("cannot copy")

func newFilesPut(c *connector) *cobra.Command {
	var extract bool
	cmd := withoutNames(c.command(&cobra.Command{
		Use:   "put <local> <id>:[path]",
		Short: "Copy a file or folder of this host to a volume",
		Long: "Copy a file, or a folder with everything in it, to a volume. If the path is empty or ends with a slash,\n" +
			"the copy is made in that folder, else it is the new name. Standard input is -. Existing files are\n" +
			"replaced, each when its copy is complete; missing folders are created.\n\n" +
			"Executable files become executable (0755). Links in a folder are left out, and reported.\n\n" +
			"With --extract the file is an archive (tar, tar.gz, tar.bz2, tar.zst or zip), and the path a folder into\n" +
			"which it is extracted while it is sent: all of it, or nothing after an error.\n\n" + filesHelp,
		Example: "  berth files put server.properties survival:\n  berth files put plugins survival:\n" +
			"  tar -cz world | berth files put - survival:world.tar.gz\n  berth files put --extract modpack.zip survival:",
		Args: cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		a, volume, err := d.resolve(cmd.Context(), args[1])
		if err != nil {
			return err
		}
		if extract {
			return putArchive(cmd, d, volume, args[0], a)
		}
		return put(cmd, d, volume, args[0], a)
	}))
	cmd.Flags().BoolVar(&extract, "extract", false, "extract an archive into the folder")
	cmd.ValidArgsFunction = c.completeFiles(0)
	return cmd
}

// put copies a local file or folder to a volume.
func put(cmd *cobra.Command, d *daemon, volume, local string, a address) error {
	if local == "-" {
		if a.folder {
			return withCode(exitUsage, fmt.Errorf("%s: name the file that standard input is written to", a))
		}
		t := &transfer{cmd: cmd, d: d, volume: volume}
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
		a = a.join(v1.EscapePath(filepath.Base(name)))
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
	t := &transfer{cmd: cmd, d: d, volume: volume}
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

// putFolder copies everything below root to the folder a.
func (t *transfer) putFolder(root *os.Root, a address) error {
	return fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		to := a.join(v1.EscapePath(name))
		switch {
		case err != nil:
			err = fmt.Errorf("%w %s: %w", errLocal, name, err)
		case e.Type()&fs.ModeSymlink != 0:
			t.links++
		case e.IsDir() && to.path != "":
			err = t.retry(func() error { return t.d.Files().Mkdir(t.ctx(), t.volume, to.path) })
		case !e.IsDir():
			err = t.retry(func() error { return t.putFile(root, name, to) })
		}
		if err == nil {
			return nil
		}
		if err := t.skip(fmt.Errorf("%s: %w", to, err)); err != nil {
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
	_, err := t.d.Files().Upload(t.ctx(), t.volume, a.path, io.TeeReader(content, t), client.UploadOptions{Size: size})
	if err != nil {
		return fmt.Errorf("%s: %w", a, err)
	}
	t.files++
	return nil
}

func newFilesGet(c *connector) *cobra.Command {
	cmd := withoutNames(c.command(&cobra.Command{
		Use:   "get <id>:<path> [local]",
		Short: "Copy a file or folder from a volume to this host",
		Long: "Copy a file, or a folder with everything in it, from a volume to this host (default: the working\n" +
			"directory). If local is a directory or ends with a slash, the copy is made in it, else it is the\n" +
			"new name; - is standard output, where a folder is a tar. Existing files are replaced, each when its\n" +
			"copy is complete.\n\n" +
			"A download that fails leaves no file behind. Nothing is written outside the local directory. Links in\n" +
			"a folder are left out, and reported.\n\n" + filesHelp,
		Example: "  berth files get survival:server.properties\n  berth files get survival:world backup/\n" +
			"  berth files get survival:backup.tar.gz - | tar -tz\n" +
			"  berth files get survival: - | berth files put --extract - creative:",
		Args: cobra.RangeArgs(1, 2),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		a, volume, err := d.resolve(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		local := "."
		if len(args) == 2 {
			local = args[1]
		}
		return get(cmd, d, volume, a, local)
	}))
	cmd.ValidArgsFunction = c.completeFiles(1)
	return cmd
}

// get copies a file or folder of a volume to a local path.
func get(cmd *cobra.Command, d *daemon, volume string, a address, local string) error {
	entry, err := d.stat(cmd.Context(), volume, a)
	if err != nil {
		return err
	}
	folder := entry.Type == v1.TypeDirectory || entry.Symlink && a.folder
	if local == "-" {
		if folder {
			return getArchive(cmd, d, volume, a)
		}
		_, err := d.fetch(cmd.Context(), volume, a, cmd.OutOrStdout())
		return err
	}
	base, err := localPath(path.Base(a.path))
	if err != nil {
		return err
	}
	dir, name := localTarget(local, base, a.path == "")
	if err := os.MkdirAll(dir, 0o777); err != nil { // the umask applies
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	t := &transfer{cmd: cmd, d: d, volume: volume}
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

// localPath returns the path of this host for a relative one in a volume, which has its bytes.
func localPath(name string) (string, error) {
	p, err := v1.ParsePath("./"+name, v1.DotsInNames)
	return path.Clean(p), err
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

// getFolder copies everything below a folder to a directory of root.
func (t *transfer) getFolder(a address, root *os.Root, name string) error {
	if err := root.MkdirAll(name, 0o777); err != nil {
		return err
	}
	base, err := root.OpenRoot(name)
	if err != nil {
		return err
	}
	defer base.Close()
	return t.getBelow(a, base, ".")
}

// getBelow copies what is in a folder below a.
func (t *transfer) getBelow(a address, base *os.Root, folder string) error {
	var list []v1.FileEntry
	err := t.retry(func() (err error) {
		list, err = t.d.Files().List(t.ctx(), t.volume, a.join(folder).path)
		return err
	})
	if err != nil {
		return t.skip(fmt.Errorf("%s: %w", a.join(folder), err))
	}
	for _, e := range list {
		name := path.Join(folder, e.Name)
		local, err := localPath(name)
		switch {
		case err != nil || e.Name == "" || e.Name == "." || e.Name == ".." || strings.Contains(e.Name, "/") || strings.Contains(local, `\`):
			err = fmt.Errorf("%w %q in %s: the name is not that of a file", errLocal, e.Name, a.join(folder))
		case e.Symlink:
			t.links++
		case e.Type != v1.TypeDirectory:
			err = t.retry(func() error { return t.getFile(a.join(name), base, local, e) })
		default:
			if err = base.Mkdir(local, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
				err = fmt.Errorf("%w %s: %w", errLocal, a.join(name), err)
			} else {
				err = t.getBelow(a, base, name)
			}
		}
		if err := t.skip(err); err != nil {
			return err
		}
	}
	return nil
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
	n, err := t.d.fetch(t.ctx(), t.volume, a, file)
	t.bytes += n
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

// fetch writes the content of a file to out, and returns how many bytes it wrote.
func (d *daemon) fetch(ctx context.Context, volume string, a address, out io.Writer) (n int64, err error) {
	content, err := d.Files().Download(ctx, volume, a.path)
	if err == nil {
		defer content.Close()
		n, err = io.Copy(out, content)
	}
	if err != nil {
		return n, fmt.Errorf("%s: %w", a, err)
	}
	return n, nil
}

// transfer copies files between a volume and this host.
type transfer struct {
	cmd    *cobra.Command
	d      *daemon
	volume string

	bytes                int64
	files, links, failed int
	failure              error // of the last that failed
}

// Write counts the bytes of an upload.
func (t *transfer) Write(p []byte) (int, error) {
	t.bytes += int64(len(p))
	return len(p), nil
}

func (t *transfer) ctx() context.Context { return t.cmd.Context() }

// retry repeats do while the daemon answers that too many file operations are in
// flight, after 0.5 s, doubling to 8 s.
func (t *transfer) retry(do func() error) error {
	for delay := 500 * time.Millisecond; ; delay *= 2 {
		err := do()
		if client.StatusOf(err) != http.StatusTooManyRequests || delay > 8*time.Second {
			return err
		}
		select {
		case <-time.After(delay):
		case <-t.ctx().Done():
			return t.ctx().Err()
		}
	}
}

// skip reports the error of one file, and returns nil if the others can be copied.
func (t *transfer) skip(err error) error {
	if err == nil || !skippable(err) {
		return err
	}
	t.failed++
	t.failure = err
	_, err = fmt.Fprintf(t.cmd.ErrOrStderr(), "berth: %v\n", err)
	return err
}

// report prints the result.
func (t *transfer) report(from, to string) error {
	result := copied{from, to, t.files, t.bytes, t.links, t.failed}
	if err := result.print(t.cmd); err != nil || t.failed == 0 {
		return err
	}
	return withCode(codeOf(t.failure), fmt.Errorf("not everything was copied: %d failed", t.failed))
}

// copied is the result of a transfer.
type copied struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
	Links  int    `json:"links"`  // that were left out
	Failed int    `json:"failed"` // files and folders
}

func (c copied) print(cmd *cobra.Command) error {
	text := fmt.Sprintf("copied %s to %s: %s, %s", c.From, c.To, count(c.Files, "file"), bytesText(c.Bytes))
	if c.Links > 0 {
		text += fmt.Sprintf("; %s left out", count(c.Links, "link"))
	}
	return answer(cmd, c, printable(text))
}

// count returns a number of things, such as "1 file" or "2 files".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// skippable reports whether an error is about one file alone: a folder is copied
// without it.
func skippable(err error) bool {
	switch client.StatusOf(err) {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusConflict:
		return !errors.Is(err, v1.ErrVolumeNotFound)
	}
	return errors.Is(err, errLocal)
}
