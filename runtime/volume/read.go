package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	v1 "berth/api/v1"
	"berth/runtime/volume/fsys"
)

// Open opens the regular file at p for reading. It follows links that stay in the
// volume, and never opens anything but a regular file.
func (f Files) Open(ctx context.Context, id, p string) (*os.File, error) {
	p, err := parseEntry(p)
	if err != nil {
		return nil, err
	}
	vol, err := f.m.open(ctx, id)
	if err != nil {
		return nil, err
	}
	defer vol.close()
	file, err := vol.openFile(p, os.O_RDONLY)
	return file, refuseRead(p, err)
}

// openFile opens the regular file that p leads to, with flags of open(2).
func (vol *openVolume) openFile(p string, flags int) (*os.File, error) {
	dir, base, err := vol.resolve(p)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return fsys.OpenRegular(dir.Root, base, flags)
}

func notAFile(p string) error {
	return v1.Errorf(v1.InvalidRequest, "Not a file: %s", v1.EscapePath(p))
}

// refuseRead is refuse for operations that only read.
func refuseRead(p string, err error) error {
	err = refuse(p, err)
	if errors.Is(err, v1.ErrWriteDenied) {
		return v1.Errorf(v1.WriteDenied, "Failed to read file: permission denied")
	}
	return err
}

// List returns the entries of the folder p, folders first, sorted by name.
func (f Files) List(ctx context.Context, id, p string) ([]v1.FileEntry, error) {
	p, err := parse(p)
	if err != nil {
		return nil, err
	}
	return inspect(ctx, f, id, p, (*openVolume).list)
}

// entryOverhead is the memory of an entry of a list besides its name, in bytes.
const entryOverhead = 96

func (vol *openVolume) list(p string) ([]v1.FileEntry, error) {
	d, err := vol.root.OpenFolder(p)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	list, held := []v1.FileEntry{}, int64(0)
	err = d.Each(func(name string, info fs.FileInfo, err error) error {
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

// clockInterval is how many entries a search visits between two checks of its
// time limit.
const clockInterval = 256

// Search returns the entries below the folder p whose name contains query, ignoring
// case. A query with * or ? is a pattern that the whole name must match; no other character is
// special. Search stops after Limits.SearchResults results, Limits.SearchEntries entries or
// Limits.SearchTime, and skips folders that it cannot read or that are nested too deeply: the result
// is truncated then. It is sorted by path.
func (f Files) Search(ctx context.Context, id, p, query string) (v1.SearchResult, error) {
	found := v1.SearchResult{Files: []v1.FoundFile{}}
	p, err := parse(p)
	if err != nil {
		return found, err
	}
	match, err := matcher(query)
	if err != nil {
		return found, err
	}
	limits, began, seen := f.m.opt.Limits, time.Now(), 0
	err = f.readVolume(ctx, id, p, func(vol *openVolume) error {
		r, err := vol.root.OpenFolder(p)
		if err != nil {
			return err
		}
		defer r.Close()
		up := strings.TrimPrefix(p+"/", "./")
		w := walker{ctxErr: vol.ctxErr, depth: limits.Depth,
			tooDeep: func() error { found.Truncated = true; return nil },
			failed: func(err error) error {
				if errors.Is(err, fs.ErrPermission) {
					found.Truncated = true
					return nil
				}
				return err
			},
			visit: func(it entry) error {
				if seen++; seen > limits.SearchEntries || seen%clockInterval == 0 && time.Since(began) > limits.SearchTime {
					return errEnough
				}
				e := describe(it.name, it.info)
				if !match(e.Name) {
					return nil
				}
				if len(found.Files) == limits.SearchResults {
					return errEnough
				}
				found.Files = append(found.Files, v1.FoundFile{Path: v1.EscapePath(it.path()), Type: e.Type, Size: e.Size})
				return nil
			}}
		return w.walk(r, up, 0)
	})
	if errors.Is(err, errEnough) {
		found.Truncated = true
	} else if err != nil {
		return v1.SearchResult{}, refuseRead(p, err)
	}
	slices.SortFunc(found.Files, func(a, b v1.FoundFile) int { return strings.Compare(a.Path, b.Path) })
	return found, nil
}

func matcher(query string) (func(name string) bool, error) {
	query = strings.ToLower(query)
	switch {
	case query == "":
		return nil, v1.Errorf(v1.InvalidRequest, "query: is required")
	case len(query) > v1.MaxComponent:
		return nil, v1.Errorf(v1.InvalidRequest, "query: is longer than %d bytes", v1.MaxComponent)
	case !strings.ContainsAny(query, "*?"):
		return func(name string) bool { return strings.Contains(strings.ToLower(name), query) }, nil
	}
	query = strings.NewReplacer(`\`, `\\`, `[`, `\[`).Replace(query) // path.Match has more special characters
	return func(name string) bool {
		ok, _ := path.Match(query, strings.ToLower(name))
		return ok
	}, nil
}
