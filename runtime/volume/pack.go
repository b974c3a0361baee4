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
)

// gzipLevel trades some size for speed: a panel waits for the archive.
const gzipLevel = 2

// gzipBlock is how much is compressed at once. Two blocks more than there are
// cores are under way, so that none waits while files are opened or the disk is
// slow.
const gzipBlock = 1 << 20

// packer writes one archive. After an error only close may be called.
type packer interface {
	// add writes an entry: a folder, whose name ends with a slash, a link to
	// target, or a file with content, which gives as many bytes as info says.
	add(name, target string, info fs.FileInfo, content io.Reader) error
	// link writes a hard link to an entry that was added before.
	link(name, first string, info fs.FileInfo) error
	close() error
}

// sink is where an archive goes. It counts, and takes its bytes from the
// operation's share. After its first error it swallows what comes: a
// compressor that is told of an error leaves its goroutines behind.
type sink struct {
	f     *os.File
	share *reservation
	end   func() error
	n     int64
	early int64 // how much the disk was asked to take
	err   error
}

func (s *sink) Write(p []byte) (int, error) {
	if s.err != nil {
		return len(p), nil
	}
	if s.err = s.end(); s.err != nil {
		return len(p), nil
	}
	if grown := roundUp(s.n+int64(len(p))) - roundUp(s.n); grown > 0 {
		s.err = s.share.grow(grown)
	}
	if s.err == nil {
		_, s.err = s.f.Write(p)
	}
	s.n += int64(len(p))
	if s.n-s.early >= earlyPart {
		// A hint, which does not wait: it leaves little to the fsync in the end.
		_ = unix.SyncFileRange(int(s.f.Fd()), s.early, s.n-s.early, unix.SYNC_FILE_RANGE_WRITE)
		s.early = s.n
	}
	return len(p), nil
}

// earlyPart is how much the disk is asked to take at once.
const earlyPart = 4 << 20

func newPacker(format string, w *sink, m *Manager) (packer, error) {
	switch format {
	case "zip":
		return newZipPacker(w, m), nil
	case "tar":
		return newTarPacker(newBuffered(w), m), nil
	case "tar.bz2":
		return newTarPacker(newBzip2(w), m), nil
	}
	z, err := pgzip.NewWriterLevel(w, gzipLevel)
	if err == nil {
		err = z.SetConcurrency(gzipBlock, runtime.GOMAXPROCS(0)+2)
	}
	if err != nil {
		return nil, err
	}
	return newTarPacker(z, m), nil
}

// tarPacker writes a tar, in the PAX form where a name or a size needs it.
type tarPacker struct {
	tw    *tar.Writer
	under io.WriteCloser
	m     *Manager
}

func newTarPacker(w io.WriteCloser, m *Manager) *tarPacker {
	return &tarPacker{tw: tar.NewWriter(w), under: w, m: m}
}

func (p *tarPacker) add(name, target string, info fs.FileInfo, content io.Reader) error {
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

func (p *tarPacker) link(name, first string, info fs.FileInfo) error {
	h := header(name, info)
	h.Typeflag, h.Linkname = tar.TypeLink, first
	return p.tw.WriteHeader(h)
}

func (p *tarPacker) close() error { return errors.Join(p.tw.Close(), p.under.Close()) }

func header(name string, info fs.FileInfo) *tar.Header {
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime().Truncate(time.Second)}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		h.Uid, h.Gid = int(st.Uid), int(st.Gid)
	}
	return h
}

// zipPacker writes a zip. The format has a directory at its end, and its writer
// keeps that until then; held is about what it takes.
type zipPacker struct {
	zw   *zip.Writer
	m    *Manager
	held int64 // bytes
}

// zipEntryHeld is what the writer keeps of an entry beside its name.
const zipEntryHeld = 256

func newZipPacker(w io.Writer, m *Manager) *zipPacker {
	zw := zip.NewWriter(w)
	zw.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return kflate.NewWriter(w, flate.DefaultCompression)
	})
	return &zipPacker{zw: zw, m: m}
}

func (p *zipPacker) add(name, target string, info fs.FileInfo, content io.Reader) error {
	if p.held += zipEntryHeld + int64(len(name)); p.held > p.m.opt.Limits.Held {
		return v1.Errorf(v1.SizeLimit, "Too many files for a zip, whose list is kept in memory: another format can hold them")
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

// link is not called: a zip knows no hard links, so each name has its content.
func (p *zipPacker) link(string, string, fs.FileInfo) error { return errors.ErrUnsupported }

func (p *zipPacker) close() error { return p.zw.Close() }

// drain copies src to its end through a buffer that is used again.
func (m *Manager) drain(dst io.Writer, src io.Reader) error {
	buf := m.bufs.Get().(*[]byte)
	defer m.bufs.Put(buf)
	_, err := io.CopyBuffer(struct{ io.Writer }{dst}, src, *buf)
	return err
}
