package volume

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"

	v1 "berth/api/v1"
)

// headroom is how many bytes per entry a tar may have besides file contents.
const headroom = 4096

// tar extracts a tar. It reads r to its end, so that a compressor's checksum is
// verified too.
func (u *extractor) tar(r io.Reader) error {
	limits := u.t.m.opt.Limits
	all := &boundedReader{u: u, r: r, left: limits.ExtractBytes + headroom*int64(limits.Entries)}
	tr := tar.NewReader(all)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return u.src.readError(err)
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
	return u.src.readError(u.t.m.drain(io.Discard, all))
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
		return e, invalidArchive("Archive has an entry that is no file, folder or link: %q", h.Name)
	}
	return e, nil
}

// boundedReader reads a tar until a number of bytes or a ratio to the archive's
// size is exceeded, or the operation ends. Bytes outside of file contents are
// counted nowhere else, and a few compressed bytes can become gigabytes of them.
type boundedReader struct {
	u    *extractor
	r    io.Reader
	n    int64
	left int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if err := b.u.t.ctxErr(); err != nil {
		b.u.src.err = err // not a fault of the archive
		return 0, err
	}
	n, err := b.r.Read(p)
	b.n += int64(n)
	if b.left -= int64(n); b.left < 0 {
		return 0, v1.Errorf(v1.SizeLimit, "Archive has too many bytes outside of its files")
	}
	if refused := b.u.ratio(b.n); refused != nil {
		return 0, refused
	}
	return n, err
}
