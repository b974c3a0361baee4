package volume

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"

	v1 "berth/api/v1"
)

// headroom is what a tar may hold beside the content of its files, an entry.
const headroom = 4096

// tar unfolds a tar, and reads r to its end, so that the checksum of what holds
// it is checked too.
func (u *extractor) tar(r io.Reader) error {
	limits := u.t.m.opt.Limits
	all := &bounded{u: u, r: r, left: limits.ExtractBytes + headroom*int64(limits.Entries)}
	tr := tar.NewReader(all)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return u.src.damage(err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		e, err := tarEntry(h, tr)
		if err == nil {
			err = u.add(e)
		}
		if err != nil {
			return err
		}
	}
	return u.src.damage(u.t.m.drain(io.Discard, all))
}

func tarEntry(h *tar.Header, content io.Reader) (extractedEntry, error) {
	e := extractedEntry{name: h.Name, mode: fs.FileMode(h.Mode).Perm(), time: h.ModTime, size: h.Size, target: h.Linkname}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeRegA, tar.TypeCont, tar.TypeGNUSparse: //nolint:staticcheck // old archives have it
		e.content = content
	case tar.TypeDir:
		e.mode |= fs.ModeDir
	case tar.TypeSymlink:
		e.mode |= fs.ModeSymlink
	case tar.TypeLink:
		e.hard = true
	default:
		return e, damaged("Archive holds what is no file, folder or link: %q", h.Name)
	}
	return e, nil
}

// bounded reads a tar, and refuses to go on after a number of bytes, when they
// are too many for the size of the archive, and at the operation's end: what is
// no content of a file is counted nowhere else, and a few bytes of the archive
// may be gigabytes of it.
type bounded struct {
	u    *extractor
	r    io.Reader
	n    int64
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if err := b.u.t.ctx(); err != nil {
		b.u.src.err = err // not a fault of the archive
		return 0, err
	}
	n, err := b.r.Read(p)
	b.n += int64(n)
	if b.left -= int64(n); b.left < 0 {
		return 0, v1.Errorf(v1.SizeLimit, "Archive unfolds to more than is allowed")
	}
	if refused := b.u.ratio(b.n); refused != nil {
		return 0, refused
	}
	return n, err
}
