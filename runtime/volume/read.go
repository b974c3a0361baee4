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

// List gives the entries of the folder p, folders first, sorted by name. What
// berth itself keeps in a volume is left out.
func (f Files) List(ctx context.Context, id, p string) ([]v1.FileEntry, error) {
	p, err := clean(p)
	if err != nil {
		return nil, err
	}
	var list []v1.FileEntry
	err = f.on(ctx, id, p, func(t *tree) (err error) {
		list, err = t.list(p)
		return err
	})
	return list, err
}

// entryHeld is what a list takes for an entry beside its name.
const entryHeld = 96

func (t *tree) list(p string) ([]v1.FileEntry, error) {
	d, err := openFolder(t.Root, p)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	list, held := []v1.FileEntry{}, int64(0)
	err = eachName(d, func(name string) error {
		if p == root && isTemp(name) {
			return nil
		}
		if err := t.ctx(); err != nil {
			return err
		}
		if held += entryHeld + int64(len(name)); held > t.m.opt.Limits.Listed {
			return v1.Errorf(v1.SizeLimit, "Folder has too many files to list: search finds them")
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

// entry describes a file without following it.
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

// Open opens the regular file at p to be read. Links are followed as long as
// they stay in the volume; nothing but a regular file is ever opened.
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
	file, err := openRegular(t.Root, p)
	return file, refuseRead(p, err)
}

// openRegular looks before it opens, and again at what it has opened: had a
// FIFO been put there in between, O_NONBLOCK keeps the open from waiting.
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

// refuseRead is refuse for what only reads.
func refuseRead(p string, err error) error {
	err = refuse(p, err)
	if errors.Is(err, v1.ErrWriteDenied) {
		return v1.Errorf(v1.WriteDenied, "Failed to read file: permission denied")
	}
	return err
}
