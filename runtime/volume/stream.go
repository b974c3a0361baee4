package volume

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"runtime/debug"

	v1 "berth/api/v1"
	"berth/runtime/volume/backup"
	"berth/runtime/volume/fsys"
)

// Archive opens a folder as an archive, which is made while it is sent: nothing is written to the volume. Its entries
// are those of Compress without those that t.Ignore selects. ctx is that of the call, and its values are those of the
// archive.
func (m *Manager) Archive(ctx context.Context, id string, t v1.Tree) (v1.ArchiveStream, error) {
	folder, err := parse(t.Folder)
	if err != nil {
		return nil, err
	}
	vol, err := m.open(context.WithoutCancel(ctx), id)
	if err != nil {
		return nil, err
	}
	dir, err := vol.root.OpenFolder(folder)
	if err != nil {
		vol.close()
		return nil, refuseRead(folder, err)
	}
	return &archiveStream{dir: dir, compressor: &compressor{vol: vol, format: t.Format, folder: folder,
		ignore: backup.Matcher{Rules: backup.ParseRules(t.Ignore), Most: matchingTime}, names: fsys.Names{Free: m.opt.Limits.NameBytes}}}, nil
}

// archiveStream is a v1.ArchiveStream.
type archiveStream struct {
	*compressor
	dir *fsys.Folder
}

// WriteTo implements io.WriterTo. A panic becomes an error: the caller sends an answer, outside of what recovers.
func (s *archiveStream) WriteTo(w io.Writer) (n int64, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v at %s", p, debug.Stack())
		}
	}()
	counted := &countingWriter{w: w}
	buf := s.vol.m.bufs.Get().(*bufio.Writer)
	defer s.vol.m.bufs.Put(buf)
	buf.Reset(counted)
	if err = s.writeTo(buf, s.dir); err == nil {
		err = buf.Flush()
	}
	return counted.n, refuseRead(s.folder, err)
}

// Close closes the folder and the volume.
func (s *archiveStream) Close() error {
	err := s.dir.Close()
	s.vol.close()
	return err
}

// countingWriter counts the bytes that it writes.
type countingWriter struct {
	w io.Writer
	n int64
}

// Write implements io.Writer.
func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
