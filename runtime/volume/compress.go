package volume

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	v1 "berth/api/v1"
)

// Compress makes an archive of what c names. It appears under its name when it
// is whole and durable; the archive itself and what berth keeps in a volume are
// left out. Links are kept as links, but those that point outside the volume
// are left out and counted; so, uncounted, are sockets, FIFOs and devices.
func (f Files) Compress(ctx context.Context, id string, c v1.Compression) (v1.Archive, error) {
	job, err := newPacking(c)
	if err != nil {
		return v1.Archive{}, err
	}
	out := v1.Archive{Path: job.out}
	err = f.on(ctx, id, job.out, func(t *tree) error {
		if _, err := t.Lstat(job.out); err == nil {
			return exists(job.out)
		}
		job.t = t
		return job.run(&out)
	})
	return out, err
}

// packing is one compression under way.
type packing struct {
	t       *tree
	format  string
	folder  string   // that the names in the archive are relative to
	paths   []string // from folder; sorted, none within another
	out     string   // from the volume's root
	pack    packer
	skipped int
	entries int
	inodes  map[inode]string // names of files with several hard links
	held    int64            // bytes that these take
	holes   int64            // bytes of files that are on no disk
}

func newPacking(c v1.Compression) (*packing, error) {
	p := &packing{format: c.Format, folder: root, inodes: map[inode]string{}}
	if p.format == "" {
		p.format = "tar.gz"
	}
	if !slices.Contains(v1.Formats, p.format) {
		return nil, v1.Errorf(v1.InvalidRequest, "format: must be one of %s", strings.Join(v1.Formats, ", "))
	}
	var err error
	if c.Folder != "" {
		if p.folder, err = clean(c.Folder); err != nil {
			return nil, err
		}
	}
	name, err := cleanEntry(c.Output)
	if err != nil || strings.HasSuffix(c.Output, "/") {
		return nil, v1.ErrInvalidPath
	}
	if p.out, err = cleanEntry(path.Join(p.folder, name) + "." + p.format); err != nil {
		return nil, err
	}
	p.paths, err = distinct(c.Paths)
	return p, err
}

// distinct cleans paths and leaves out those that are within another.
func distinct(paths []string) ([]string, error) {
	var list []string
	for _, p := range paths {
		p, err := clean(p)
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

// withinAny says whether p is one of folders or below one. It takes the length
// of p, however many folders there are: a request may name very many.
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

func (p *packing) run(out *v1.Archive) error {
	dir, err := openFolder(p.t.Root, p.folder)
	if err != nil {
		return refuse(p.folder, err)
	}
	defer dir.Close()
	x := p.t.newTemp()
	sh := p.t.share()
	defer func() { x.drop(); sh.end() }()
	f, err := x.create()
	if err != nil {
		return err
	}
	defer f.Close()
	w := &sink{f: f, share: sh, end: p.t.ctx}
	if p.pack, err = newPacker(p.format, w, p.t.m); err != nil {
		return err
	}
	err = errors.Join(p.all(dir), p.pack.close())
	if w.err != nil { // why it went wrong, rather than what followed from it
		return w.err
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return err
	}
	out.Size, out.Skipped = w.n, p.skipped
	return x.publish(p.out, sh)
}

// all packs every path that was asked for.
func (p *packing) all(dir *os.Root) error {
	if len(p.paths) == 0 {
		return p.named(dir, root)
	}
	for _, name := range p.paths {
		if err := p.named(dir, name); err != nil {
			return refuse(path.Join(p.folder, name), err)
		}
	}
	return nil
}

// named packs one path: the links on the way to it are followed.
func (p *packing) named(dir *os.Root, name string) error {
	if name == root {
		all, err := openDirfd(dir, root)
		if err != nil {
			return err
		}
		defer all.close()
		return p.below(all, "", 0)
	}
	in, err := openDirfd(dir, path.Dir(name))
	if err != nil {
		return err
	}
	defer in.close()
	s, err := newDescent(in)
	if err != nil {
		return err
	}
	base := path.Base(name)
	info, err := in.lstat(base)
	if err != nil {
		return err
	}
	it := item{in: in, name: base, info: info, at: s, up: strings.TrimSuffix(name, base)}
	if info.Mode()&fs.ModeSymlink != 0 {
		if _, err := dir.Stat(name); escapes(err) || errors.Is(err, syscall.ELOOP) {
			return err
		}
	}
	if err := p.visit(it); err != nil || !info.IsDir() {
		return err
	}
	sub, err := in.open(base)
	if err != nil {
		return err
	}
	defer sub.close()
	return p.below(sub, name+"/", strings.Count(name, "/")+1)
}

func (p *packing) below(dir *dirfd, up string, level int) error {
	w := walker{end: p.t.ctx, depth: p.t.m.opt.Limits.Depth, visit: p.visit, hidden: p.t.hidden(p.folder),
		deep: func(item) error {
			return v1.Errorf(v1.InvalidRequest, "Folders are nested more than %d deep", p.t.m.opt.Limits.Depth)
		}}
	return w.walk(dir, up, level)
}

// visit packs one entry.
func (p *packing) visit(it item) error {
	if p.entries++; p.entries > p.t.m.opt.Limits.Entries {
		return v1.Errorf(v1.SizeLimit, "Too many files: an archive may have %d", p.t.m.opt.Limits.Entries)
	}
	switch it.info.Mode().Type() {
	case fs.ModeDir:
		return p.pack.add(it.path()+"/", "", it.info, nil)
	case fs.ModeSymlink:
		return p.link(it)
	case 0:
		return ignoreChanged(p.file(it))
	}
	p.entries--
	return nil
}

func (p *packing) link(it item) error {
	target, err := it.in.readlink(it.name)
	if err != nil {
		return ignoreChanged(changed(err))
	}
	if !inside(path.Join(p.folder, it.path()), target) {
		p.skipped++
		return nil
	}
	return p.pack.add(it.path(), target, it.info, nil)
}

func (p *packing) file(it item) error {
	f, err := it.in.openRegular(it.name)
	if err != nil {
		return changed(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if first := p.seen(it.path(), info); first != "" {
		return p.pack.link(it.path(), first, info)
	}
	r := &holeReader{file: f, end: p.t.ctx, size: info.Size(), most: info.Size()}
	sparse := max(0, info.Size()-allocated(info))
	if left := p.t.m.opt.Limits.Holes - p.holes; sparse > left {
		r.most = left + allocated(info)
	}
	if err := p.pack.add(it.path(), "", info, r); err != nil {
		return err
	}
	p.holes += min(sparse, r.holes)
	return nil
}

// allocated returns how many bytes a file has on the disk. Where the file system
// compresses, or has allocated what was never written, that has little to do with
// its holes.
func allocated(info fs.FileInfo) int64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Size()
	}
	return st.Blocks * 512
}

// inodeHeld is what is kept of a file with several hard links beside its name.
const inodeHeld = 64

// seen gives the name under which the same file was packed before, if its
// format knows hard links. Names that would take too much memory are forgotten:
// the file is packed again.
func (p *packing) seen(name string, info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Nlink < 2 || p.format == "zip" {
		return ""
	}
	id := inode{uint64(st.Dev), st.Ino}
	first, known := p.inodes[id]
	if need := inodeHeld + int64(len(name)); !known && p.held+need <= p.t.m.opt.Limits.Held {
		p.inodes[id] = name
		p.held += need
	}
	return first
}
