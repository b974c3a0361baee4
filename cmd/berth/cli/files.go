package cli

import (
	"fmt"
	"io"
	"path"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	v1 "berth/api/v1"
)

const filesHelp = `A file is named as <id>:<path>, such as survival:world/level.dat. The id is that of a volume (a UUID,
or its first 8 characters), or of a container, whose volume it is. container/<id> names a container
that looks like a volume. Paths are relative to the volume's root; <id>: is the root.`

func newFilesCommand(c *connector) *cobra.Command {
	cmd := withSubcommands(&cobra.Command{
		Use:     "files",
		Short:   "List, read, copy and change the files of volumes",
		Long:    "List, read, copy and change the files of volumes.\n\n" + filesHelp,
		Example: "  berth files ls survival:\n  berth files put plugins survival:\n  berth files get survival:world backup/",
	}, newFilesList(c), newFilesCat(c), newFilesRemove(c), newFilesMkdir(c), newFilesMove(c), newFilesSearch(c), newFilesEdit(c), newFilesPulls(c))
	for _, each := range cmd.Commands() {
		each.ValidArgsFunction = c.completeFiles(-1)
	}
	cmd.AddCommand(newFilesPut(c), newFilesGet(c), newFilesPull(c))
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
		a, volume, err := resolve(cmd, d, args[0])
		if err != nil {
			return err
		}
		list, err := d.Files().List(cmd.Context(), volume, a.path)
		if err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		return show(cmd, d.raw, names(list, func(e v1.FileEntry) string { return a.join(e.Name).String() }), func(t *table) {
			t.head(column{title: "MODE"}, column{title: "SIZE"}, column{title: "MODIFIED"}, column{title: "NAME", min: 16})
			for _, e := range list {
				t.row(e.Mode, units.BytesSize(float64(e.Size)), date(time.Unix(e.ModifiedAt, 0)), e.Name+suffix(e))
			}
		})
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
func resolve(cmd *cobra.Command, d *daemon, text string) (a address, volume string, err error) {
	if a, err = parseAddress(text); err != nil {
		return a, "", withCode(exitUsage, err)
	}
	volume, err = volumeOf(cmd.Context(), d, a.id)
	return a, volume, err
}

// resolvePath is resolve for an address that must not be the root.
func resolvePath(cmd *cobra.Command, d *daemon, text string) (a address, volume string, err error) {
	if a, err = parsePath(text); err != nil {
		return a, "", withCode(exitUsage, err)
	}
	return resolve(cmd, d, text)
}

func newFilesCat(c *connector) *cobra.Command {
	var raw bool
	cmd := withoutNames(c.command(&cobra.Command{
		Use:     "cat <id>:<path>...",
		Short:   "Print files",
		Long:    "Print the content of files on standard output, whatever -o is.\n\n" + filesHelp,
		Example: "  berth files cat survival:server.properties",
		Args:    cobra.MinimumNArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		out := cmd.OutOrStdout()
		if raw {
			out = unfiltered(out)
		}
		return each(cmd.Context(), d, args, func(text string) error {
			a, volume, err := resolvePath(cmd, d, text)
			if err != nil {
				return err
			}
			return fetch(cmd.Context(), d, volume, a, out, newProgress(io.Discard, -1))
		})
	}))
	cmd.Flags().BoolVar(&raw, "raw", false, "write control characters to a terminal unescaped")
	return cmd
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
		return each(cmd.Context(), d, args, func(text string) error {
			a, volume, err := resolvePath(cmd, d, text)
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
	e, err := stat(cmd.Context(), d, volume, a)
	if err == nil && e.Type == v1.TypeDirectory {
		return withCode(exitUsage, fmt.Errorf("%s is a folder: -r deletes it with everything in it", a))
	}
	return err
}

func newFilesMkdir(c *connector) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "mkdir <id>:<path>...",
		Short:   "Create folders and their missing parents",
		Long:    "Create folders and their missing parents. A folder that exists is no error.\n\n" + filesHelp,
		Example: "  berth files mkdir survival:plugins/maps",
		Args:    cobra.MinimumNArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		return each(cmd.Context(), d, args, func(text string) error {
			a, volume, err := resolvePath(cmd, d, text)
			if err != nil {
				return err
			}
			if err := d.Files().Mkdir(cmd.Context(), volume, a.path); err != nil {
				return fmt.Errorf("%s: %w", a, err)
			}
			return printDone(cmd, d.raw, a.String(), "%s: created", a)
		})
	})
}

func newFilesMove(c *connector) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "mv <id>:<path> <id>:<path>",
		Short: "Rename or move a file or folder within its volume",
		Long: "Rename or move a file or folder within its volume. An existing file is never replaced. A destination\n" +
			"that ends with a slash is the folder to move it into.\n\n" + filesHelp,
		Example: "  berth files mv survival:world survival:world-old\n  berth files mv survival:map.jar survival:plugins/",
		Args:    cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		from, volume, err := resolvePath(cmd, d, args[0])
		if err != nil {
			return err
		}
		to, err := parseAddress(args[1])
		if err != nil || to.id != from.id {
			return withCode(exitUsage, fmt.Errorf("%q must be %s:<path>: a file is moved within its volume", args[1], from.id))
		}
		if to.folder {
			to = to.join(path.Base(from.path))
		}
		if err := d.Files().Rename(cmd.Context(), volume, from.path, to.path); err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		return printDone(cmd, d.raw, to.String(), "%s: moved to %s", from, to)
	})
}

func newFilesSearch(c *connector) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "search <id>:[path] <text>",
		Short: "Find files by name",
		Long: "Find files and folders whose name contains a text, or matches it if it is a pattern with * or ?. Upper\n" +
			"and lower case are equal. At most 1,000 are found.\n\n" + filesHelp,
		Example: "  berth files search survival: '*.jar'\n  berth files search survival:world level",
		Args:    cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		a, volume, err := resolve(cmd, d, args[0])
		if err != nil {
			return err
		}
		found, err := d.Files().Search(cmd.Context(), volume, a.path, args[1])
		if err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		if found.Truncated {
			fmt.Fprintln(cmd.ErrOrStderr(), "berth: there are more files: name a folder or more of the name")
		}
		at := func(f v1.FoundFile) string { return address{id: a.id, path: f.Path}.String() }
		return show(cmd, d.raw, names(found.Files, at), func(t *table) {
			t.head(column{title: "SIZE"}, column{title: "FILE", min: 16})
			for _, f := range found.Files {
				t.row(units.BytesSize(float64(f.Size)), at(f)+suffix(v1.FileEntry{Type: f.Type}))
			}
		})
	})
}
