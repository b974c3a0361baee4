package volume

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	v1 "berth/api/v1"
	"berth/runtime/volume/archive"
	"berth/runtime/volume/backup"
	"berth/runtime/volume/fsys"
)

// Compress creates an archive of the paths in c. The archive gets its name when it
// is complete and durable. Links are stored as links; those that point outside the volume are
// skipped and counted. Sockets, FIFOs and devices are skipped and not counted.
func (m *Manager) Compress(ctx context.Context, id string, c v1.Compression) (v1.Archive, error) {
	job, err := newCompressor(c)
	if err != nil {
		return v1.Archive{}, err
	}
	out := v1.Archive{Path: v1.EscapePath(job.out)}
	err = m.change(ctx, id, job.out, func(vol *Volume) error {
		if _, err := vol.root.Lstat(job.out); err == nil {
			return exists(job.out)
		}
		job.vol, job.names.Free = vol, vol.m.opt.Limits.NameBytes
		return job.run(&out)
	})
	return out, err
}

// compressor is one compression in flight.
type compressor struct {
	vol     *Volume
	format  string
	folder  string   // base of the names in the archive
	paths   []string // relative to folder; sorted, none within another
	out     string   // from the volume's root
	archive archive.Writer
	skipped int
	entries int
	names   fsys.Names // archived, of files with several hard links
	holes   int64      // bytes of holes archived so far

	ignore backup.Matcher // of what is left out
}

func newCompressor(c v1.Compression) (*compressor, error) {
	p := &compressor{format: c.Format, folder: root}
	if p.format == "" {
		p.format = "tar.gz"
	}
	if !slices.Contains(v1.Formats(), p.format) {
		return nil, v1.Errorf(v1.InvalidRequest, "format: must be one of %s", strings.Join(v1.Formats(), ", "))
	}
	var err error
	if c.Folder != "" {
		if p.folder, err = parse(c.Folder); err != nil {
			return nil, err
		}
	}
	name, err := parseEntry(c.Output)
	if err != nil || strings.HasSuffix(c.Output, "/") {
		return nil, v1.ErrInvalidPath
	}
	if p.out, err = cleanEntry(path.Join(p.folder, name) + "." + p.format); err != nil {
		return nil, err
	}
	p.paths, err = distinct(c.Paths)
	return p, err
}

// distinct returns the cleaned paths without those that are within another.
func distinct(paths []string) ([]string, error) {
	var list []string
	for _, p := range paths {
		p, err := parse(p)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b string) int { return len(a) - len(b) })
	kept := map[string]bool{}
	for _, p := range list {
		if !withinAny(p, kept) {
			kept[p] = true
		}
	}
	return slices.Sorted(maps.Keys(kept)), nil
}

// withinAny reports whether p is one of folders or below one. Its time depends on
// the length of p, not on the number of folders: a request may name very many.
func withinAny(p string, folders map[string]bool) bool {
	if folders[root] || folders[p] {
		return true
	}
	for i := range len(p) {
		if p[i] == '/' && folders[p[:i]] {
			return true
		}
	}
	return false
}

func (p *compressor) run(out *v1.Archive) error {
	dir, err := p.vol.root.OpenFolder(p.folder)
	if err != nil {
		return refuse(p.folder, err)
	}
	defer dir.Close()
	if place, err := p.vol.placeOf(p.out); err != nil {
		return err
	} else if p.vol.denied.match(place, 0) {
		return deniedFile(p.out)
	}
	x, err := p.vol.newTempFor(path.Dir(p.out))
	if err != nil {
		return err
	}
	defer x.close()
	x.durable = true
	err = x.newFile(x.in, x.name, attributes{owner: x.owner, mode: newFileMode}, func(f *os.File) error {
		w := &reservedFile{file: f, temp: x}
		err := p.writeTo(w, dir)
		out.Size, out.Skipped = w.size, p.skipped
		return err
	})
	if err != nil {
		return err
	}
	return x.publish(p.out)
}

// writeTo writes the archive to w.
func (p *compressor) writeTo(w io.Writer, dir *fsys.Folder) (err error) {
	if p.archive, err = archive.NewWriter(p.format, w, archiveLimits(p.vol.m)); err != nil {
		return err
	}
	err = p.addAll(dir)
	if closed := p.archive.Close(); err == nil {
		err = closed
	}
	return err
}

// addAll archives every requested path.
func (p *compressor) addAll(dir *fsys.Folder) error {
	if len(p.paths) == 0 {
		return p.addPath(dir, root)
	}
	for _, name := range p.paths {
		if err := p.addPath(dir, name); err != nil {
			return refuse(path.Join(p.folder, name), err)
		}
	}
	return nil
}

// addPath archives one path. It follows links in the path's parents.
func (p *compressor) addPath(dir *fsys.Folder, name string) error {
	if name == root {
		return p.walker().Walk(dir, root, 0)
	}
	in, err := dir.OpenFolder(path.Dir(name))
	if err != nil {
		return err
	}
	defer in.Close()
	base := path.Base(name)
	e, err := fsys.Lookup(in, path.Dir(name), base)
	if err != nil {
		return err
	}
	if e.Info.Mode()&fs.ModeSymlink != 0 {
		if _, err := dir.Stat(name); fsys.Escapes(err) || errors.Is(err, syscall.ELOOP) {
			return err
		}
	}
	if err := p.visit(e); err != nil || !e.Info.IsDir() {
		return err
	}
	return p.walker().Enter(e, strings.Count(name, "/")+1)
}

// walker returns a walker that archives.
func (p *compressor) walker() *fsys.Walker {
	return &fsys.Walker{Check: p.vol.ctxErr, Depth: p.vol.m.opt.Limits.Depth, Visit: p.visit, Failed: p.vol.failedWalk}
}

// failedWalk is Walker.Failed of walks that end with an entry that cannot be read, or is too deep.
func (vol *Volume) failedWalk(_ string, err error) error {
	if errors.Is(err, fsys.ErrTooDeep) {
		return tooDeep(vol.m.opt.Limits.Depth)
	}
	return fsys.IgnoreMissing(err)
}

// tooDeep is the error of an archive or a copy of a tree with more levels of folders.
func tooDeep(limit int) error {
	return v1.Errorf(v1.InvalidRequest, "Folders are nested more than %d deep", limit)
}

// visit archives one entry.
func (p *compressor) visit(it fsys.Entry) error {
	switch refused, err := p.denied(it); {
	case err != nil:
		return err
	case refused:
		p.skipped++
		return nil
	}
	if p.entries++; p.entries > p.vol.m.opt.Limits.Entries {
		return v1.Errorf(v1.SizeLimit, "Too many files: an archive may have at most %d", p.vol.m.opt.Limits.Entries)
	}
	if ignored, err := p.ignore.Match(it.Path(), it.Info.Mode()); err != nil || ignored {
		return cmp.Or(err, fs.SkipDir)
	}
	switch it.Info.Mode().Type() {
	case fs.ModeDir:
		return p.archive.Add(archiveEntry(it.Path(), it.Info))
	case fs.ModeSymlink:
		return p.link(it)
	case 0:
		return ignoreChanged(p.file(it))
	}
	p.entries--
	return nil
}

// denied reports whether an entry is denied to the operation, as everything below a denied folder is.
func (p *compressor) denied(it fsys.Entry) (bool, error) {
	if p.vol.denied == nil {
		return false, nil
	}
	err := p.vol.allow(it.In, it.Name, it.Info.Mode())
	if errors.Is(err, &v1.Error{Code: v1.FileDenied}) {
		return true, nil
	}
	return false, fsys.IgnoreMissing(err)
}

func (p *compressor) link(it fsys.Entry) error {
	target, err := it.In.Readlink(it.Name)
	if err != nil {
		return ignoreChanged(changed(err))
	}
	if !inside(path.Join(p.folder, it.Path()), target) {
		p.skipped++
		return nil
	}
	e := archiveEntry(it.Path(), it.Info)
	e.Target = target
	return p.archive.Add(e)
}

func (p *compressor) file(it fsys.Entry) error {
	f, err := fsys.OpenRegular(it.In.Root, it.Name, os.O_RDONLY)
	if err != nil {
		return changed(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	e := archiveEntry(it.Path(), info)
	if archive.HardLinks(p.format) {
		if e.Target = p.names.First(info); e.Target != "" {
			e.HardLink = true
			return p.archive.Add(e)
		}
		p.names.Add(info, it.Path()) // without memory for it, its other links become files of their own
	}
	holes, err := fsys.Holes(f, info, p.vol.ctxErr)
	if err != nil {
		return err
	}
	if p.holes += holes; p.holes > p.vol.m.opt.Limits.HoleBytes {
		return v1.Errorf(v1.SizeLimit, "Files have too many bytes of holes for an archive: leave out the sparse file %s",
			v1.EscapePath(path.Join(p.folder, it.Path())))
	}
	// A file that shrinks meanwhile ends with zeros, and one that grows is cut.
	content := io.MultiReader(io.NewSectionReader(f, 0, info.Size()), zeros{})
	e.Content = operationReader{io.LimitReader(content, info.Size()), p.vol}
	return p.archive.Add(e)
}

// archiveEntry returns the entry of a file, a folder or a link, without its target
// and its content.
func archiveEntry(name string, info fs.FileInfo) archive.Entry {
	e := archive.Entry{Name: name, Mode: info.Mode() & (fs.ModePerm | fs.ModeType), Time: info.ModTime(), Size: info.Size()}
	e.UID, e.GID = int(fsys.Stat(info).Uid), int(fsys.Stat(info).Gid)
	return e
}

// zeros replace what a file does not have any more.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
