package backup

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	v1 "berth/api/v1"
)

// Paths are clean paths of entries of a tree, none of them its root.
type Paths []string

// of returns those that are the entry at a path or above it.
func (p Paths) of(name string) (list []string) {
	for _, one := range p {
		if name == one || isBelow(name, one) {
			list = append(list, one)
		}
	}
	return list
}

// Above reports whether an entry is only above a selected one, and not selected itself.
func (p Paths) Above(name string) bool {
	below := func(one string) bool { return isBelow(one, name) }
	return len(p.of(name)) == 0 && (name == rootPath && len(p) > 0 || slices.ContainsFunc(p, below))
}

// isBelow reports whether the entry name is below a folder.
func isBelow(name, folder string) bool {
	return folder == rootPath && name != rootPath || len(name) > len(folder) && name[len(folder)] == '/' && strings.HasPrefix(name, folder)
}

// List calls each with the header of every entry of a folder of the archive a, whose path is clean. It ends at the
// error of each. Its error has the code v1.PathNotFound if there is no such folder, and v1.InvalidArchive if it reads
// what Write does not produce; it does not compare the checksum, because it reads only as far as the folder goes.
func List(ctx context.Context, r io.Reader, a v1.SnapshotArchive, folder string, each func(name string, h *tar.Header) error) error {
	src, z, err := openSource(ctx, r, a)
	if err != nil {
		return err
	}
	defer z.Close()
	found := false
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = checkHeader(h)
		} else {
			err = src.readError(err)
		}
		switch {
		case err != nil:
			return err
		case h.Name == folder && h.Typeflag != tar.TypeDir:
			return v1.Errorf(v1.PathNotFound, "Backup has a file at the path, not a folder: %s", shorten(v1.EscapePath(folder)))
		case h.Name == folder:
			found = true
		case found && !isBelow(h.Name, folder):
			return nil // a folder is whole before what follows it
		case found && path.Dir(h.Name) == folder:
			if err := each(path.Base(h.Name), h); err != nil {
				return err
			}
		}
	}
	if !found {
		return v1.Errorf(v1.PathNotFound, "Backup does not have the path: %s", shorten(v1.EscapePath(folder)))
	}
	return nil
}
