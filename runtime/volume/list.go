package volume

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	v1 "berth/api/v1"
)

// List returns the entries of the folder p, folders first, sorted by name.
func (f Files) List(ctx context.Context, id, p string) ([]v1.FileEntry, error) {
	p, err := parse(p)
	if err != nil {
		return nil, err
	}
	var list []v1.FileEntry
	err = f.readVolume(ctx, id, p, func(vol *openVolume) (err error) {
		list, err = vol.list(p)
		return err
	})
	return list, err
}

// entryOverhead is the memory of an entry of a list besides its name, in bytes.
const entryOverhead = 96

func (vol *openVolume) list(p string) ([]v1.FileEntry, error) {
	d, err := openFolder(vol.root, p)
	if err != nil {
		return nil, err
	}
	defer d.close()
	list, held := []v1.FileEntry{}, int64(0)
	err = d.each(func(name string, info fs.FileInfo, err error) error {
		if err := vol.ctxErr(); err != nil {
			return err
		}
		if err != nil {
			return err
		}
		e := describe(name, info)
		if held += entryOverhead + int64(len(e.Name)); held > vol.m.opt.Limits.ListBytes {
			return v1.Errorf(v1.SizeLimit, "Folder has too many files to list: use search")
		}
		list = append(list, e)
		return nil
	})
	slices.SortFunc(list, func(a, b v1.FileEntry) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name))
	})
	return list, err
}

// describe describes a file without following links.
func describe(name string, info fs.FileInfo) v1.FileEntry {
	e := v1.FileEntry{
		Name: v1.EscapePath(name), Type: kind(info), Size: info.Size(),
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
