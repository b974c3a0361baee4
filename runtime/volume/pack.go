package volume

import (
	"archive/tar"
	"archive/zip"
	"compress/flate"
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	kflate "github.com/klauspost/compress/flate"
	"github.com/klauspost/pgzip"

	v1 "berth/api/v1"
	"berth/runtime/volume/quota"
)

// gzipLevel trades size for speed, because a user waits for the archive.
const gzipLevel = 2

// gzipBlock is how many bytes one goroutine compresses at a time. Two more blocks
// than cores are in flight, so that no core waits while a file is opened or the
// disk is slow.
const gzipBlock = 1 << 20

// archiveWriter writes one archive. After an error only close may be called.
type archiveWriter interface {
	// add writes an entry: a folder, whose name ends with a slash, a link to
	// target, or a file with content, which must have info.Size() bytes.
	add(name, target string, info fs.FileInfo, content io.Reader) error
	// link writes a hard link to an entry that was added before.
	link(name, first string, info fs.FileInfo) error
	close() error
}

// archiveFile is the file of a new archive. It counts the bytes and takes them from
// the operation's reservation. After its first error it discards what is written,
// because a compressor that receives an error leaks its goroutines.
type archiveFile struct {
	f           *os.File
	reservation *quota.Reservation
	ctxErr      func() error
	n           int64
	flushed     int64 // bytes that the kernel was asked to write to disk
	err         error
}

func (s *archiveFile) Write(p []byte) (int, error) {
	if s.err != nil {
		return len(p), nil
	}
	if s.err = s.ctxErr(); s.err != nil {
		return len(p), nil
	}
	if grown := quota.RoundUp(s.n+int64(len(p))) - quota.RoundUp(s.n); grown > 0 {
		s.err = s.reservation.Grow(grown)
	}
	if s.err == nil {
		_, s.err = s.f.Write(p)
	}
	s.n += int64(len(p))
	if s.n-s.flushed >= flushBytes {
		// A hint that does not block. It leaves little for the final fsync.
		_ = unix.SyncFileRange(int(s.f.Fd()), s.flushed, s.n-s.flushed, unix.SYNC_FILE_RANGE_WRITE)
		s.flushed = s.n
	}
	return len(p), nil
}

// flushBytes is how many bytes are flushed to disk at a time.
const flushBytes = 4 << 20

func newArchiveWriter(format string, w *archiveFile, m *Manager) (archiveWriter, error) {
	switch format {
	case "zip":
		return newZipWriter(w, m), nil
	case "tar":
		return newTarWriter(newBuffered(w), m), nil
	case "tar.bz2":
		return newTarWriter(newBzip2(w), m), nil
	}
	z, err := pgzip.NewWriterLevel(w, gzipLevel)
	if err == nil {
		err = z.SetConcurrency(gzipBlock, runtime.GOMAXPROCS(0)+2)
	}
	if err != nil {
		return nil, err
	}
	return newTarWriter(z, m), nil
}

// tarWriter writes a tar, in PAX format where a name or a size requires it.
type tarWriter struct {
	tw    *tar.Writer
	under io.WriteCloser
	m     *Manager
}

func newTarWriter(w io.WriteCloser, m *Manager) *tarWriter {
	return &tarWriter{tw: tar.NewWriter(w), under: w, m: m}
}

func (p *tarWriter) add(name, target string, info fs.FileInfo, content io.Reader) error {
	h := header(name, info)
	switch {
	case content != nil:
		h.Typeflag, h.Size = tar.TypeReg, info.Size()
	case target != "":
		h.Typeflag, h.Linkname = tar.TypeSymlink, target
	default:
		h.Typeflag = tar.TypeDir
	}
	if err := p.tw.WriteHeader(h); err != nil || content == nil {
		return err
	}
	return p.m.drain(p.tw, content)
}

func (p *tarWriter) link(name, first string, info fs.FileInfo) error {
	h := header(name, info)
	h.Typeflag, h.Linkname = tar.TypeLink, first
	return p.tw.WriteHeader(h)
}

func (p *tarWriter) close() error { return errors.Join(p.tw.Close(), p.under.Close()) }

func header(name string, info fs.FileInfo) *tar.Header {
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime().Truncate(time.Second)}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		h.Uid, h.Gid = int(st.Uid), int(st.Gid)
	}
	return h
}

// zipWriter writes a zip. The format ends with a directory, which package zip keeps
// in memory until close; held is about its size.
type zipWriter struct {
	zw   *zip.Writer
	m    *Manager
	held int64 // bytes
}

// zipEntryOverhead is the memory that package zip keeps for an entry besides its
// name, in bytes.
const zipEntryOverhead = 256

func newZipWriter(w io.Writer, m *Manager) *zipWriter {
	zw := zip.NewWriter(w)
	zw.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return kflate.NewWriter(w, flate.DefaultCompression)
	})
	return &zipWriter{zw: zw, m: m}
}

func (p *zipWriter) add(name, target string, info fs.FileInfo, content io.Reader) error {
	if p.held += zipEntryOverhead + int64(len(name)); p.held > p.m.opt.Limits.NameBytes {
		return v1.Errorf(v1.SizeLimit, "Too many files for a zip, whose directory is kept in memory: choose another format")
	}
	h := &zip.FileHeader{Name: name, Modified: info.ModTime().Truncate(time.Second), Method: zip.Store}
	h.SetMode(info.Mode() & (fs.ModePerm | fs.ModeType))
	if content != nil && info.Size() > 0 {
		h.Method = zip.Deflate
	}
	w, err := p.zw.CreateHeader(h)
	if err != nil {
		return err
	}
	if content != nil {
		return p.m.drain(w, content)
	}
	_, err = io.WriteString(w, target)
	return err
}

// link is never called: zip has no hard links, so each name has its own content.
func (p *zipWriter) link(string, string, fs.FileInfo) error { return errors.ErrUnsupported }

func (p *zipWriter) close() error { return p.zw.Close() }

// drain copies src to its end through a pooled buffer.
func (m *Manager) drain(dst io.Writer, src io.Reader) error {
	buf := m.bufs.Get().(*[]byte)
	defer m.bufs.Put(buf)
	_, err := io.CopyBuffer(struct{ io.Writer }{dst}, src, *buf)
	return err
}
