package archive

import (
	"archive/zip"
	"compress/flate"
	"errors"
	"io"
	"io/fs"
	"math"
	"strings"
	"time"

	kflate "github.com/klauspost/compress/flate"

	v1 "berth/api/v1"
)

// zipWriter writes a zip. Package zip keeps the directory in memory until Close.
type zipWriter struct {
	out       *output
	zw        *zip.Writer
	buf       []byte
	directory int64 // bytes, at least what the directory will have
	limit     int64 // bytes of the directory
	memory    zipMemory
}

func newZipWriter(out *output, limits Limits) (*zipWriter, error) {
	deflate, err := kflate.NewWriter(nil, flate.DefaultCompression) // one for all files: its tables are large
	if err != nil {
		return nil, err
	}
	zw := zip.NewWriter(out)
	zw.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		deflate.Reset(w)
		return deflate, nil
	})
	return &zipWriter{out: out, zw: zw, buf: make([]byte, bufferBytes), limit: limits.ZipDirectoryBytes,
		memory: zipMemory{of: limits.ZipDirectories}}, nil
}

func (w *zipWriter) Add(e Entry) error {
	if w.out.err != nil {
		return w.out.err
	}
	if e.HardLink {
		return errors.ErrUnsupported
	}
	h := &zip.FileHeader{Name: e.Name, Modified: e.Time.Truncate(time.Second), Method: zip.Store}
	h.SetMode(e.Mode & (fs.ModePerm | fs.ModeType))
	switch {
	case e.Mode.IsDir():
		h.Name = folderName(e.Name)
	case e.Mode.IsRegular() && e.Size > 0:
		h.Method = zip.Deflate
	}
	if w.directory += zipRecordBytes(h.Name, w.out.n+e.Size); w.directory > w.limit {
		return zipTooLarge()
	}
	if err := w.memory.grow(w.directory); err != nil {
		return err
	}
	f, err := w.zw.CreateHeader(h)
	if err != nil {
		return err
	}
	if e.Mode.IsRegular() {
		return copyContent(f, e.Content, w.buf)
	}
	_, err = io.WriteString(f, e.Target)
	return err
}

func (w *zipWriter) Close() error {
	defer w.memory.release()
	return w.out.close(w.zw)
}

// zip extracts a zip, entry by entry as its directory lists them. stream is at its first byte.
func (x *extraction) zip(stream io.Reader) error {
	if x.src.whole == nil {
		whole, size, err := x.opt.Spool(stream)
		if err != nil {
			return x.src.fail(err)
		}
		x.src.whole, x.src.size = whole, size
	}
	memory := zipMemory{of: x.limits.ZipDirectories}
	defer memory.release()
	zr, err := x.openZip(&memory)
	if err != nil {
		return x.src.cause(err)
	}
	zr.RegisterDecompressor(zip.Deflate, kflate.NewReader)
	for _, f := range zr.File {
		if err := x.addZipFile(f); err != nil {
			return err
		}
	}
	return nil
}

func (x *extraction) addZipFile(f *zip.File) error {
	e := Entry{Name: x.zipName(&f.FileHeader), Time: zipTime(&f.FileHeader), Size: int64(f.UncompressedSize64)}
	e.Mode = zipMode(&f.FileHeader, e.Name)
	if e.Mode&fs.ModeIrregular != 0 && f.UncompressedSize64 > 0 { // `| zip x.zip -` writes the mode of its standard input
		e.Mode = e.Mode.Perm()
	}
	switch {
	case e.Mode&fs.ModeIrregular != 0:
		return x.skip(e.Name, v1.SkippedSpecial)
	case e.Mode.IsDir():
		return x.add(e, nil)
	case f.UncompressedSize64 > math.MaxInt64:
		return x.src.cause(zip.ErrFormat)
	case f.Flags&1 != 0:
		return invalid("Archive is encrypted: %q", f.Name)
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return unknownMethod(f.Method)
	}
	r, err := f.Open()
	if err != nil {
		return x.src.cause(err)
	}
	defer r.Close()
	if e.Mode&fs.ModeSymlink == 0 {
		return x.add(e, r)
	}
	if e.Size > v1.MaxPath {
		return v1.ErrInvalidPath
	}
	target, err := io.ReadAll(r)
	if err != nil {
		return x.src.cause(err)
	}
	e.Target = string(target)
	return x.add(e, nil)
}

// zipMode returns the mode that a unix wrote, or else the mode for the attributes
// of DOS. It returns fs.ModeIrregular for a type that archives do not have. name is the decoded
// one.
func zipMode(h *zip.FileHeader, name string) fs.FileMode {
	folder := strings.HasSuffix(name, "/")
	system, mode := h.CreatorVersion>>8, h.ExternalAttrs>>16
	if (system == createdByUnix || system == createdByDarwin) && mode != 0 {
		kind := unixType(mode)
		if folder && kind == 0 {
			kind = fs.ModeDir
		}
		return kind | fs.FileMode(mode).Perm()
	}
	const readOnly, directory = 0x01, 0x10
	switch {
	case folder || h.ExternalAttrs&directory != 0:
		return fs.ModeDir | 0o755
	case h.ExternalAttrs&readOnly != 0:
		return 0o444
	}
	return 0o644
}

func unixType(mode uint32) fs.FileMode {
	const format, folder, regular, link = 0o170000, 0o040000, 0o100000, 0o120000
	switch mode & format {
	case 0, regular:
		return 0
	case folder:
		return fs.ModeDir
	case link:
		return fs.ModeSymlink
	}
	return fs.ModeIrregular
}

// zipTime returns the modification time, or the zero time if the file has none.
// Package zip takes a missing date for the last day of November 1979, and a time without a field in
// UTC, which is one of the local zone, for UTC.
func zipTime(h *zip.FileHeader) time.Time {
	if y, m, d := h.Modified.Date(); y == 1979 && m == time.November && d == 30 {
		return time.Time{}
	}
	date := h.ModifiedDate //nolint:staticcheck // an archive with a field in UTC may leave it empty
	if t := h.Modified; t.Location() == time.UTC && date != 0 {
		return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.Local)
	}
	return h.Modified
}
