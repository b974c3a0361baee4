package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	v1 "berth/api/v1"
)

// List returns the entries of the folder p, folders first, sorted by name, without
// berth's temporary entries.
func (f Files) List(ctx context.Context, id, p string) ([]v1.FileEntry, error) {
	p, err := clean(p)
	if err != nil {
		return nil, err
	}
	var list []v1.FileEntry
	err = f.withTree(ctx, id, p, func(t *tree) (err error) {
		list, err = t.list(p)
		return err
	})
	return list, err
}

// entryOverhead is the memory of an entry of a list besides its name, in bytes.
const entryOverhead = 96

func (t *tree) list(p string) ([]v1.FileEntry, error) {
	d, err := openFolder(t.root, p)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	list, held := []v1.FileEntry{}, int64(0)
	err = eachName(d, func(name string) error {
		if p == root && isTemp(name) {
			return nil
		}
		if err := t.ctxErr(); err != nil {
			return err
		}
		if held += entryOverhead + int64(len(name)); held > t.m.opt.Limits.ListBytes {
			return v1.Errorf(v1.SizeLimit, "Folder has too many files to list: use search")
		}
		info, err := d.Lstat(name)
		if err == nil {
			list = append(list, entry(name, info))
		}
		return ignoreMissing(err)
	})
	slices.SortFunc(list, func(a, b v1.FileEntry) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name))
	})
	return list, err
}

// entry describes a file without following links.
func entry(name string, info fs.FileInfo) v1.FileEntry {
	e := v1.FileEntry{
		Name: name, Type: kind(info), Size: info.Size(),
		Mode:       fmt.Sprintf("%04o", info.Mode().Perm()),
		ModifiedAt: info.ModTime().Unix(),
		Symlink:    info.Mode()&fs.ModeSymlink != 0,
	}
	if e.Type == v1.TypeDirectory {
		e.Size = 0
	}
	return e
}

func kind(info fs.FileInfo) string {
	if info.IsDir() {
		return v1.TypeDirectory
	}
	return v1.TypeFile
}

// Open opens the regular file at p for reading. It follows links that stay in the
// volume, and never opens anything but a regular file.
func (f Files) Open(ctx context.Context, id, p string) (*os.File, error) {
	p, err := cleanEntry(p)
	if err != nil {
		return nil, err
	}
	t, err := f.m.open(ctx, id)
	if err != nil {
		return nil, err
	}
	defer t.close()
	file, err := openRegular(t.root, p)
	return file, refuseRead(p, err)
}

// openRegular checks the type before and after it opens p. O_NONBLOCK keeps open(2)
// from waiting if p was replaced by a FIFO in between.
func openRegular(r *os.Root, p string) (*os.File, error) {
	info, err := r.Stat(p)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notAFile(p)
	}
	f, err := r.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = notAFile(p)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func notAFile(p string) error { return v1.Errorf(v1.InvalidRequest, "Not a file: %s", p) }

// refuseRead is refuse for operations that only read.
func refuseRead(p string, err error) error {
	err = refuse(p, err)
	if errors.Is(err, v1.ErrWriteDenied) {
		return v1.Errorf(v1.WriteDenied, "Failed to read file: permission denied")
	}
	return err
}
