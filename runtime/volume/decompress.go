package volume

import (
	"archive/tar"
	"bytes"
	"compress/bzip2"
	"context"
	"errors"
	"io"
	"os"

	"github.com/klauspost/pgzip"

	v1 "berth/api/v1"
)

// Decompress unfolds an archive into the folder dest, which is made when it is
// missing. The format is told by content. All is unfolded into a temporary
// folder first, so an archive with one bad entry leaves nothing, and then moved
// into place: files replace files, folders are merged, and where a file meets a
// folder nothing is moved. The names are durable then, the content when the
// kernel has written it: an fsync of each file would take longer than all else,
// and the archive is still there.
func (f Files) Decompress(ctx context.Context, id, archive, dest string) error {
	archive, err := cleanEntry(archive)
	if err != nil {
		return err
	}
	dest, err = clean(dest)
	if err != nil {
		return err
	}
	return f.on(ctx, id, dest, func(t *tree) error { return t.decompress(archive, dest) })
}

func (t *tree) decompress(archive, dest string) error {
	f, err := openRegular(t.Root, archive)
	if err != nil {
		return refuseRead(archive, err)
	}
	defer f.Close()
	if info, err := t.Stat(dest); err == nil && !info.IsDir() {
		return exists(dest)
	}
	x := t.newTemp()
	sh := t.share()
	// What is left of the temporary folder by then is what was replaced.
	moved := false
	defer func() {
		freed := x.drop()
		sh.end()
		if moved {
			t.used.release(-freed)
		}
	}()
	if err := sh.grow(blockSize); err != nil {
		return err
	}
	stage, err := x.mkdir()
	if err != nil {
		return err
	}
	defer stage.close()
	at, err := newDescent(stage.fd())
	if err != nil {
		return err
	}
	defer at.close()
	u := &extractor{t: t, share: sh, dest: dest, stage: stage.Root, at: at}
	if err := u.archive(f); err != nil {
		return err
	}
	if err := u.leave(0); err != nil {
		return err
	}
	if err := commitInto(t, x, stage, dest); err != nil {
		return err
	}
	moved = true
	t.used.release(sh.n)
	return nil
}

// source is the archive's file: it ends with the operation, and remembers what
// it said, so that a read that failed is not taken for a damaged archive.
type source struct {
	f    *os.File
	end  func() error
	size int64
	err  error
}

func (s *source) Read(p []byte) (int, error) {
	if err := s.end(); err != nil {
		s.err = err
		return 0, err
	}
	n, err := s.f.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

func (s *source) ReadAt(p []byte, off int64) (int, error) {
	if err := s.end(); err != nil {
		s.err = err
		return 0, err
	}
	n, err := s.f.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// damage says why an archive could not be read on.
func (s *source) damage(err error) error {
	if s.err != nil {
		return s.err
	}
	var known *v1.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return damaged("Archive is damaged: %v", err)
}

// archive unfolds f by the format that its content shows.
func (u *extractor) archive(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	u.src = &source{f: f, end: u.t.ctx, size: info.Size()}
	head := make([]byte, 512)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch head = head[:n]; {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return u.zip()
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return u.gzip()
	case bytes.HasPrefix(head, []byte("BZh")):
		return u.tar(bzip2.NewReader(u.src))
	case len(head) == 512 && (bytes.HasPrefix(head[257:], []byte("ustar")) || isOldTar(head)):
		return u.tar(u.src)
	}
	return damaged("Not an archive: format is none of zip, tar, tar.gz and tar.bz2")
}

// isOldTar says whether a block that bears no mark is the header of a tar.
func isOldTar(head []byte) bool {
	_, err := tar.NewReader(bytes.NewReader(append(head[:512:512], make([]byte, 1024)...))).Next()
	return err == nil || errors.Is(err, io.EOF)
}

func (u *extractor) gzip() error {
	z, err := pgzip.NewReader(u.src)
	if err != nil {
		return u.src.damage(err)
	}
	defer z.Close()
	return u.tar(z)
}
