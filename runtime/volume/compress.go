package volume

import (
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

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume/archive"
	"berth/runtime/volume/fsys"
)

// Compress creates an archive of the paths in c. The archive gets its name when it
// is complete and durable. Links are stored as links; those that point outside the volume are
// skipped and counted. Sockets, FIFOs and devices are skipped and not counted.
func (f Files) Compress(ctx context.Context, id string, c v1.Compression) (v1.Archive, error) {
	job, err := newCompressor(c)
	if err != nil {
		return v1.Archive{}, err
	}
	out := v1.Archive{Path: v1.EscapePath(job.out)}
	err = f.withVolume(ctx, id, job.out, func(vol *openVolume) error {
		if _, err := vol.root.Lstat(job.out); err == nil {
			return exists(job.out)
		}
		job.vol = vol
		return job.run(&out)
	})
	return out, err
}

// compressor is one compression in flight.
type compressor struct {
	vol       *openVolume
	format    string
	folder    string   // base of the names in the archive
	paths     []string // relative to folder; sorted, none within another
	out       string   // from the volume's root
	archive   archive.Writer
	skipped   int
	entries   int
	inodes    map[fsys.Inode]string // archived names of files with several hard links
	nameBytes int64                 // bytes of memory of inodes
	holes     int64                 // bytes of holes archived so far
}

func newCompressor(c v1.Compression) (*compressor, error) {
	p := &compressor{format: c.Format, folder: root, inodes: map[fsys.Inode]string{}}
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
	x, err := p.vol.newTempFor(path.Dir(p.out))
	if err != nil {
		return err
	}
	defer x.close()
	err = x.write(newFileMode, func(f *os.File) (err error) {
		w := &reservedFile{file: f, temp: x}
		if p.archive, err = archive.NewWriter(p.format, w, archiveLimits(p.vol.m)); err != nil {
			return err
		}
		err = p.addAll(dir)
		if closed := p.archive.Close(); err == nil {
			err = closed
		}
		out.Size, out.Skipped = w.size, p.skipped
		return err
	})
	if err != nil {
		return err
	}
	return x.publish(p.out)
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
		return p.tree().walk(dir, "", 0)
	}
	in, err := dir.OpenFolder(path.Dir(name))
	if err != nil {
		return err
	}
	defer in.Close()
	base := path.Base(name)
	e, err := lookup(in, strings.TrimSuffix(name, base), base)
	if err != nil {
		return err
	}
	if e.info.Mode()&fs.ModeSymlink != 0 {
		if _, err := dir.Stat(name); fsys.Escapes(err) || errors.Is(err, syscall.ELOOP) {
			return err
		}
	}
	if err := p.visit(e); err != nil || !e.info.IsDir() {
		return err
	}
	return p.tree().enter(e, strings.Count(name, "/")+1)
}

// tree returns a walker that archives.
func (p *compressor) tree() *walker {
	return &walker{ctxErr: p.vol.ctxErr, depth: p.vol.m.opt.Limits.Depth, visit: p.visit,
		tooDeep: func() error { return tooDeep(p.vol.m.opt.Limits.Depth) }}
}

// tooDeep is the error of an archive or a copy of a tree with more levels of folders.
func tooDeep(limit int) error {
	return v1.Errorf(v1.InvalidRequest, "Folders are nested more than %d deep", limit)
}

// visit archives one entry.
func (p *compressor) visit(it entry) error {
	if p.entries++; p.entries > p.vol.m.opt.Limits.Entries {
		return v1.Errorf(v1.SizeLimit, "Too many files: an archive may have at most %d", p.vol.m.opt.Limits.Entries)
	}
	switch it.info.Mode().Type() {
	case fs.ModeDir:
		return p.archive.Add(archiveEntry(it.path(), it.info))
	case fs.ModeSymlink:
		return p.link(it)
	case 0:
		return ignoreChanged(p.file(it))
	}
	p.entries--
	return nil
}

func (p *compressor) link(it entry) error {
	target, err := it.in.Readlink(it.name)
	if err != nil {
		return ignoreChanged(changed(err))
	}
	if !inside(path.Join(p.folder, it.path()), target) {
		p.skipped++
		return nil
	}
	e := archiveEntry(it.path(), it.info)
	e.Target = target
	return p.archive.Add(e)
}

func (p *compressor) file(it entry) error {
	f, err := fsys.OpenRegular(it.in.Root, it.name, os.O_RDONLY)
	if err != nil {
		return changed(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	e := archiveEntry(it.path(), info)
	if first := p.seen(it.path(), info); first != "" {
		e.HardLink, e.Target = true, first
		return p.archive.Add(e)
	}
	holes, err := p.holesOf(f, info)
	if err != nil {
		return err
	}
	if p.holes += holes; p.holes > p.vol.m.opt.Limits.HoleBytes {
		return v1.Errorf(v1.SizeLimit, "Files have too many bytes of holes for an archive: leave out the sparse file %s", v1.EscapePath(path.Join(p.folder, it.path())))
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

// inodeOverhead is the memory of a file with several hard links besides its name,
// in bytes.
const inodeOverhead = 64

// seen returns the name under which the same file was archived before, if the
// format supports hard links. Beyond Limits.NameBytes names are not recorded, and
// the file is archived again.
func (p *compressor) seen(name string, info fs.FileInfo) string {
	if fsys.Stat(info).Nlink < 2 || !archive.HardLinks(p.format) {
		return ""
	}
	id := fsys.InodeOf(info)
	first, known := p.inodes[id]
	if need := inodeOverhead + int64(len(name)); !known && p.nameBytes+need <= p.vol.m.opt.Limits.NameBytes {
		p.inodes[id] = name
		p.nameBytes += need
	}
	return first
}

// eachExtent calls f for the parts of file, up to size, that have data; between them are holes. A
// part has at most 64 MiB, so that f can check its context often. A file system without holes has
// one extent.
func eachExtent(file *os.File, size int64, f func(off, n int64) error) error {
	const most = 64 << 20
	for off := int64(0); off < size; {
		begin, err := file.Seek(off, unix.SEEK_DATA)
		switch {
		case errors.Is(err, syscall.ENXIO): // holes up to the end
			return nil
		case err != nil:
			begin = off
		}
		end, err := file.Seek(begin, unix.SEEK_HOLE)
		if err != nil {
			end = size
		}
		end = min(end, size)
		for off = max(end, off+1); begin < end; begin += most {
			if err := f(begin, min(end-begin, most)); err != nil {
				return err
			}
		}
	}
	return nil
}

// holesOf returns the bytes of holes of a file. What a file system has compressed or preallocated is
// no hole.
func (p *compressor) holesOf(file *os.File, info fs.FileInfo) (holes int64, err error) {
	holes = info.Size()
	err = eachExtent(file, info.Size(), func(_, n int64) error {
		holes -= n
		return p.vol.ctxErr()
	})
	return min(holes, max(0, info.Size()-allocated(info))), err
}

// zeros replace what a file does not have any more.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
