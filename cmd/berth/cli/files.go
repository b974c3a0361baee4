package cli

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

const filesHelp = `A file is named as <id>:<path>, such as survival:world/level.dat. The id is that of a volume (a UUID,
or its first 8 characters), or of a container, whose volume it is. container/<id> names a container
that looks like a volume. Paths are relative to the volume's root; <id>: is the root.`

func newFilesCommand(c *connector) *cobra.Command {
	cmd := withSubcommands(&cobra.Command{
		Use:     "files",
		Short:   "List, read, copy and delete the files of volumes",
		Long:    "List, read, copy and delete the files of volumes.\n\n" + filesHelp,
		Example: "  berth files ls survival:\n  berth files put plugins survival:\n  berth files get survival:world backup/",
	}, newFilesList(c), newFilesCat(c), newFilesRemove(c))
	for _, each := range cmd.Commands() {
		each.ValidArgsFunction = c.completeFiles(-1)
	}
	cmd.AddCommand(newFilesPut(c), newFilesGet(c))
	return cmd
}

func newFilesList(c *connector) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "ls <id>:[path]",
		Short:   "List a folder",
		Long:    "List a folder: folders first, then files and links.\n\n" + filesHelp,
		Example: "  berth files ls survival:\n  berth files ls 3f2a91c0:world",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		a, volume, err := d.resolve(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		list, err := d.Files().List(cmd.Context(), volume, a.path)
		if err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		return showFiles(cmd, d, list, func(e v1.FileEntry) string { return a.join(e.Name).String() })
	})
}

// showFiles prints the entries of a folder.
func showFiles(cmd *cobra.Command, d *daemon, list []v1.FileEntry, name func(v1.FileEntry) string) error {
	return show(cmd, d.raw, names(list, name), func(t *table) {
		t.head("MODE", "SIZE", "MODIFIED", "NAME")
		for _, e := range list {
			t.row(e.Mode, bytesText(e.Size), date(time.Unix(e.ModifiedAt, 0)), e.Name+suffix(e))
		}
	})
}

// suffix returns what distinguishes the name of a folder or a link, as `ls -F` does.
func suffix(e v1.FileEntry) string {
	switch {
	case e.Type == v1.TypeDirectory:
		return "/"
	case e.Symlink:
		return "@"
	}
	return ""
}

// resolve returns an address and its volume.
func (d *daemon) resolve(ctx context.Context, text string) (a address, volume string, err error) {
	if a, err = parseAddress(text); err != nil {
		return a, "", withCode(exitUsage, err)
	}
	volume, err = d.volumeOf(ctx, a.id)
	return a, volume, err
}

// resolvePath is resolve for an address that must not be the root.
func (d *daemon) resolvePath(ctx context.Context, text string) (a address, volume string, err error) {
	if a, err = parsePath(text); err != nil {
		return a, "", withCode(exitUsage, err)
	}
	return d.resolve(ctx, text)
}

func newFilesCat(c *connector) *cobra.Command {
	return withoutNames(c.command(&cobra.Command{
		Use:     "cat <id>:<path>...",
		Short:   "Print files",
		Long:    "Print the content of files on standard output, whatever -o is.\n\n" + filesHelp,
		Example: "  berth files cat survival:server.properties",
		Args:    cobra.MinimumNArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		return d.each(cmd.Context(), args, func(text string) error {
			a, volume, err := d.resolvePath(cmd.Context(), text)
			if err != nil {
				return err
			}
			_, err = d.fetch(cmd.Context(), volume, a, cmd.OutOrStdout())
			return err
		})
	}))
}

func newFilesRemove(c *connector) *cobra.Command {
	var recursive bool
	cmd := c.command(&cobra.Command{
		Use:     "rm <id>:<path>...",
		Short:   "Delete files, or folders with -r",
		Long:    "Delete files, or with -r folders with everything in them. A link is deleted, not its target.\n\n" + filesHelp,
		Example: "  berth files rm survival:server.properties.old\n  berth files rm -r survival:world",
		Args:    cobra.MinimumNArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		return d.each(cmd.Context(), args, func(text string) error {
			a, volume, err := d.resolvePath(cmd.Context(), text)
			if err == nil && !recursive {
				err = checkNoFolder(cmd, d, volume, a)
			}
			if err != nil {
				return err
			}
			if err := d.Files().Delete(cmd.Context(), volume, a.path); err != nil {
				return fmt.Errorf("%s: %w", a, err)
			}
			return printDone(cmd, d.raw, a.String(), "%s: deleted", a)
		})
	})
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "delete folders too, with everything in them")
	return cmd
}

// checkNoFolder returns an error if an address names a folder.
func checkNoFolder(cmd *cobra.Command, d *daemon, volume string, a address) error {
	e, err := d.stat(cmd.Context(), volume, a)
	if err == nil && e.Type == v1.TypeDirectory {
		return withCode(exitUsage, fmt.Errorf("%s is a folder: -r deletes it with everything in it", a))
	}
	return err
}

// containerPrefix begins the name of a container that looks like a volume's id.
const containerPrefix = "container/"

// volumeID matches the UUID of a volume and the first 8 characters of it.
var volumeID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$|^[0-9a-f]{8}$`)

// address names a file or folder of a volume, such as survival:world/level.dat.
type address struct {
	id     string // as it was given: of a volume or of a container
	path   string // relative to the volume's root; empty: the root
	folder bool   // it ended with a slash or was empty
}

// parseAddress parses "<id>:<path>". The path may begin with a slash.
func parseAddress(text string) (a address, err error) {
	id, rest, found := strings.Cut(text, ":")
	if !found || id == "" {
		return a, fmt.Errorf("%q must be <id>:<path>, such as survival:server.properties, or survival: for its root", text)
	}
	rest = strings.TrimLeft(rest, "/")
	a = address{id, "", rest == "" || strings.HasSuffix(rest, "/")}
	if rest == "" {
		return a, nil
	}
	if _, err := v1.ParsePath(rest, v1.DotsInNames); err != nil {
		return a, fmt.Errorf("%s: %w", text, err)
	}
	a.path = a.join(rest).path
	return a, nil
}

// parsePath is parseAddress for a path that must not be the root.
func parsePath(text string) (address, error) {
	a, err := parseAddress(text)
	if err == nil && a.path == "" {
		err = fmt.Errorf("%s names the whole volume: name a file or folder in it", text)
	}
	return a, err
}

// String returns the address as a user writes it.
func (a address) String() string { return a.id + ":" + a.path }

// join returns the address of a file below a folder.
func (a address) join(name string) address {
	joined := path.Join(a.path, name)
	if joined == "." {
		joined = ""
	}
	return address{id: a.id, path: joined}
}

// volumeOf returns the volume that an id names: a volume's UUID or its first 8
// characters, else a container, whose volume it is.
func (d *daemon) volumeOf(ctx context.Context, id string) (string, error) {
	name, named := strings.CutPrefix(id, containerPrefix)
	if !named && volumeID.MatchString(id) {
		return id, nil
	}
	c, err := d.Containers().Get(ctx, name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", id, err)
	}
	return c.VolumeID, nil
}

// stat returns the entry of a file or folder, which it finds in the list of its parent.
func (d *daemon) stat(ctx context.Context, volume string, a address) (v1.FileEntry, error) {
	if a.path == "" {
		return v1.FileEntry{Type: v1.TypeDirectory}, nil
	}
	parent := path.Dir(a.path)
	if parent == "." {
		parent = ""
	}
	list, err := d.Files().List(ctx, volume, parent)
	if err != nil {
		return v1.FileEntry{}, fmt.Errorf("%s: %w", a, err)
	}
	for _, e := range list {
		if e.Name == path.Base(a.path) {
			return e, nil
		}
	}
	missing := &client.Error{Status: http.StatusNotFound, Code: v1.PathNotFound, Message: "Path not found: " + a.path}
	return v1.FileEntry{}, fmt.Errorf("%s: %w", a, missing)
}
