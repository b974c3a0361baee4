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
	"berth/runtime/volume/quota"
)

// Decompress extracts an archive into the folder dest, which it creates if it is
// missing. It detects the format by content. It extracts into a temporary folder
// first, so an archive with one invalid entry leaves nothing, and then moves the
// entries to dest: files replace files and folders are merged. If a file conflicts
// with a folder, nothing is moved. On return the names are durable, but the
// contents only once the kernel has written them: an fsync of each file would take
// longer than everything else, and the archive still exists.
func (f Files) Decompress(ctx context.Context, id, archive, dest string) error {
	archive, err := cleanEntry(archive)
	if err != nil {
		return err
	}
	dest, err = clean(dest)
	if err != nil {
		return err
	}
	return f.withTree(ctx, id, dest, func(t *tree) error { return t.decompress(archive, dest) })
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
	res := t.newReservation(0)
	// After a merge the temporary folder has the files that were replaced.
	moved := false
	defer func() {
		freed := x.remove()
		res.Release()
		if moved {
			t.quota.Add(-freed)
		}
	}()
	if err := res.Grow(quota.Block); err != nil {
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
	u := &extractor{t: t, reservation: res, dest: dest, stage: stage.Root, at: at}
	if err := u.extract(f); err != nil {
		return err
	}
	if err := u.leave(0); err != nil {
		return err
	}
	if err := commitInto(t, x, stage, dest); err != nil {
		return err
	}
	moved = true
	t.quota.Add(res.Bytes())
	return nil
}

// source reads the archive's file until the operation ends. It keeps the first
// error, so that a failed read is not reported as a damaged archive.
type source struct {
	f      *os.File
	ctxErr func() error
	size   int64
	err    error
}

func (s *source) Read(p []byte) (int, error) {
	if err := s.ctxErr(); err != nil {
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
	if err := s.ctxErr(); err != nil {
		s.err = err
		return 0, err
	}
	n, err := s.f.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// readError returns the cause of an error that a format's reader returned.
func (s *source) readError(err error) error {
	if s.err != nil {
		return s.err
	}
	var known *v1.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return invalidArchive("Archive is damaged: %v", err)
}

// extract extracts f by the format that its first bytes show.
func (u *extractor) extract(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	u.src = &source{f: f, ctxErr: u.t.ctxErr, size: info.Size()}
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
	return invalidArchive("Not an archive: the format must be zip, tar, tar.gz or tar.bz2")
}

// isOldTar reports whether a block without a magic number is a tar header.
func isOldTar(head []byte) bool {
	_, err := tar.NewReader(bytes.NewReader(append(head[:512:512], make([]byte, 1024)...))).Next()
	return err == nil || errors.Is(err, io.EOF)
}

func (u *extractor) gzip() error {
	z, err := pgzip.NewReader(u.src)
	if err != nil {
		return u.src.readError(err)
	}
	defer z.Close()
	return u.tar(z)
}
