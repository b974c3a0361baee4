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
	"syscall"
	"time"

	"golang.org/x/text/unicode/norm"

	v1 "berth/api/v1"
	"berth/runtime/volume/fsys"
)

// Open opens the regular file at p for reading. It follows links that stay in the
// volume, and never opens anything but a regular file.
func (m *Manager) Open(ctx context.Context, id, p string) (*os.File, error) {
	p, err := parseEntry(p)
	if err != nil {
		return nil, err
	}
	vol, err := m.open(ctx, id)
	if err != nil {
		return nil, err
	}
	defer vol.close()
	file, err := vol.openFile(p, os.O_RDONLY)
	return file, refuseRead(p, err)
}

// openFile opens the regular file that p leads to, with flags of open(2).
func (vol *Volume) openFile(p string, flags int) (*os.File, error) {
	dir, base, err := vol.resolve(p)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if err := vol.allowFound(dir, base); err != nil {
		return nil, err
	}
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
func (m *Manager) List(ctx context.Context, id, p string) ([]v1.FileEntry, error) {
	p, err := parse(p)
	if err != nil {
		return nil, err
	}
	return inspect(ctx, m, id, p, (*Volume).list)
}

// entryOverhead is the memory of an entry of a list besides its name, in bytes.
const entryOverhead = 96

func (vol *Volume) list(p string) ([]v1.FileEntry, error) {
	d, err := vol.root.OpenFolder(p)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	l := vol.m.newListing()
	err = d.Each(func(name string, info fs.FileInfo, err error) error {
		if err := vol.ctxErr(); err != nil {
			return err
		}
		if err != nil {
			return err
		}
		e := describe(name, info)
		if e.Symlink {
			e.Link, e.TargetType = vol.describeLink(d, path.Join(p, name), name)
		}
		return l.add(e)
	})
	return l.sorted(), err
}

// listing is a list of entries in bounded memory.
type listing struct {
	entries []v1.FileEntry
	free    int64 // bytes
}

func (m *Manager) newListing() *listing {
	return &listing{[]v1.FileEntry{}, m.opt.Limits.ListBytes}
}

func (l *listing) add(e v1.FileEntry) error {
	if l.free -= entryOverhead + int64(len(e.Name)+len(e.Link)); l.free < 0 {
		return v1.Errorf(v1.SizeLimit, "Folder has too many files to list: use search")
	}
	l.entries = append(l.entries, e)
	return nil
}

// sorted returns the entries, folders first, sorted by name.
func (l *listing) sorted() []v1.FileEntry {
	slices.SortFunc(l.entries, func(a, b v1.FileEntry) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name))
	})
	return l.entries
}

// describe describes a file without following links.
func describe(name string, info fs.FileInfo) v1.FileEntry {
	e := v1.FileEntry{
		Name: v1.EscapePath(name), Type: kind(info), Size: info.Size(),
		Mode:       fmt.Sprintf("%04o", info.Mode().Perm()),
		ModifiedAt: info.ModTime().Unix(),
		Symlink:    info.Mode()&fs.ModeSymlink != 0,
	}
	if st, is := info.Sys().(*syscall.Stat_t); is { // an archive has no time of a change
		e.ChangedAt = st.Ctim.Sec
	}
	if e.Type == v1.TypeDirectory {
		e.Size = 0
	}
	return e
}

// describeLink returns the target of the link name of a folder, which is at p, and the type of what it
// leads to in the volume.
func (vol *Volume) describeLink(in *fsys.Folder, p, name string) (target, of string) {
	target, err := in.Readlink(name)
	if err != nil { // it was removed
		return "", ""
	}
	if info, err := vol.root.Stat(p); err == nil {
		of = kind(info)
	}
	return v1.EscapePath(target), of
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
func (m *Manager) Search(ctx context.Context, id, p, query string) (v1.SearchResult, error) {
	found := v1.SearchResult{Files: []v1.FoundFile{}}
	p, err := parse(p)
	if err != nil {
		return found, err
	}
	match, err := matcher(query)
	if err != nil {
		return found, err
	}
	limits, began, seen := m.opt.Limits, time.Now(), 0
	err = m.read(ctx, id, p, func(vol *Volume) error {
		r, err := vol.root.OpenFolder(p)
		if err != nil {
			return err
		}
		defer r.Close()
		w := fsys.Walker{Check: vol.ctxErr, Depth: limits.Depth,
			Failed: func(_ string, err error) error {
				if err = fsys.IgnoreMissing(err); fsys.Is(err, fsys.ErrTooDeep, fs.ErrPermission) {
					found.Truncated = true
					return nil
				}
				return err
			},
			Visit: func(it fsys.Entry) error {
				if seen++; seen > limits.SearchEntries || seen%clockInterval == 0 && time.Since(began) > limits.SearchTime {
					return errEnough
				}
				e := describe(it.Name, it.Info)
				if !match(e.Name) {
					return nil
				}
				if len(found.Files) == limits.SearchResults {
					return errEnough
				}
				found.Files = append(found.Files, v1.FoundFile{Path: v1.EscapePath(it.Path()), Type: e.Type, Size: e.Size,
					ModifiedAt: e.ModifiedAt, ChangedAt: e.ChangedAt})
				return nil
			}}
		return w.Walk(r, p, 0)
	})
	if errors.Is(err, errEnough) {
		found.Truncated = true
	} else if err != nil {
		return v1.SearchResult{}, refuseRead(p, err)
	}
	slices.SortFunc(found.Files, func(a, b v1.FoundFile) int { return strings.Compare(a.Path, b.Path) })
	return found, nil
}

// folded returns a name as it is compared: without case, and composed. macOS decomposes the names
// of the files that it uploads.
func folded(name string) string { return norm.NFC.String(strings.ToLower(name)) }

func matcher(query string) (func(name string) bool, error) {
	query = folded(query)
	switch {
	case query == "":
		return nil, v1.Errorf(v1.InvalidRequest, "query: is required")
	case len(query) > v1.MaxComponent:
		return nil, v1.Errorf(v1.InvalidRequest, "query: is longer than %d bytes", v1.MaxComponent)
	case !strings.ContainsAny(query, "*?"):
		return func(name string) bool { return strings.Contains(folded(name), query) }, nil
	}
	query = strings.NewReplacer(`\`, `\\`, `[`, `\[`).Replace(query) // path.Match has more special characters
	return func(name string) bool {
		ok, _ := path.Match(query, folded(name))
		return ok
	}, nil
}
