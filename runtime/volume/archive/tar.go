package archive

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"time"

	v1 "berth/api/v1"
)

// tarOverhead is how many bytes per entry a tar may have besides file contents.
const tarOverhead = 4096

// tarWriter writes a tar, in PAX format where a name or a size requires it.
type tarWriter struct {
	out   *output
	tw    *tar.Writer
	under io.WriteCloser
	buf   []byte
}

func newTarWriter(out *output, under io.WriteCloser) *tarWriter {
	return &tarWriter{out: out, tw: tar.NewWriter(under), under: under, buf: make([]byte, bufferBytes)}
}

func (w *tarWriter) Add(e Entry) error {
	if w.out.err != nil {
		return w.out.err
	}
	h := &tar.Header{Name: e.Name, Mode: int64(e.Mode.Perm()), ModTime: e.Time.Truncate(time.Second),
		Uid: e.UID, Gid: e.GID, Linkname: e.Target}
	switch {
	case e.HardLink:
		h.Typeflag = tar.TypeLink
	case e.Mode.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, folderName(e.Name)
	case e.Mode&fs.ModeSymlink != 0:
		h.Typeflag = tar.TypeSymlink
	default:
		h.Typeflag, h.Size = tar.TypeReg, e.Size
	}
	if err := w.tw.WriteHeader(h); err != nil || h.Typeflag != tar.TypeReg {
		return err
	}
	return copyContent(w.tw, e.Content, w.buf)
}

func (w *tarWriter) Close() error { return w.out.close(w.tw, w.under) }

// bounded returns a reader of an uncompressed archive.
func (x *extraction) bounded(r io.Reader) *tarReader {
	return &tarReader{x: x, r: r, left: x.limits.Bytes + tarOverhead*int64(x.limits.Entries)}
}

// tar extracts a tar. It reads r, which is bounded, to its end, so that a compressor's
// checksum is verified too.
func (x *extraction) tar(r io.Reader) error {
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return x.src.cause(err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		if e, known := tarEntry(h); known {
			err = x.add(e, tr)
		} else {
			err = x.skip(h.Name, v1.SkippedSpecial)
		}
		if err != nil {
			return err
		}
	}
	return x.src.cause(copyContent(io.Discard, r, make([]byte, bufferBytes)))
}

// tarEntry returns the entry of a header. known is false for devices, FIFOs, labels of a
// volume and other types that are no file, folder or link.
func tarEntry(h *tar.Header) (e Entry, known bool) {
	e = Entry{Name: h.Name, Mode: fs.FileMode(h.Mode).Perm(), Time: h.ModTime, Size: h.Size, Target: h.Linkname}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeRegA, tar.TypeCont, tar.TypeGNUSparse: //nolint:staticcheck // old archives have it
	case tar.TypeDir:
		e.Mode |= fs.ModeDir
	case tar.TypeSymlink:
		e.Mode |= fs.ModeSymlink
	case tar.TypeLink:
		e.HardLink = true
	default:
		return e, false
	}
	return e, true
}

// tarReader reads a tar until a number of bytes or a ratio to the archive's size is
// exceeded, or the context ends. Bytes outside of file contents are counted nowhere
// else, and a few compressed bytes can become gigabytes of them.
type tarReader struct {
	x    *extraction
	r    io.Reader
	n    int64
	left int64
}

func (t *tarReader) Read(p []byte) (int, error) {
	if err := t.x.ctxErr(); err != nil {
		return 0, t.x.src.fail(err)
	}
	n, err := t.r.Read(p)
	t.n += int64(n)
	if t.left -= int64(n); t.left < 0 {
		return 0, v1.Errorf(v1.SizeLimit, "Archive has too many bytes outside of its files")
	}
	if refused := t.x.checkRatio(t.n); refused != nil {
		return 0, refused
	}
	return n, err
}
