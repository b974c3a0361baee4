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
func (u *unfolding) tar(r io.Reader) error {
	limits := u.t.m.opt.Limits
	all := &bounded{r: r, left: limits.ExtractBytes + headroom*int64(limits.Entries)}
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

func tarEntry(h *tar.Header, content io.Reader) (unfolded, error) {
	e := unfolded{name: h.Name, mode: fs.FileMode(h.Mode).Perm(), time: h.ModTime, size: h.Size, target: h.Linkname}
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

// bounded is a reader that refuses to go on after a number of bytes.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, v1.Errorf(v1.SizeLimit, "Archive unfolds to more than is allowed")
	}
	return n, err
}
