package volume

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"berth/runtime/volume/backup"
	"berth/runtime/volume/fsys"
)

// Write writes content to the file at p. It writes a durable temporary file first
// and then replaces p. It creates p's parents. If it fails, or reading content
// fails, the old file stays unchanged.
func (f Files) Write(ctx context.Context, id, p string, content io.Reader) error {
	p, err := parseEntry(p)
	if err != nil {
		return err
	}
	return f.withVolume(ctx, id, p, func(vol *openVolume) error { return vol.write(p, content) })
}

func (vol *openVolume) write(p string, content io.Reader) error {
	name, err := vol.follow(p)
	if err != nil {
		return err
	}
	dst, base, old, err := vol.locate(name)
	if err != nil {
		return err
	}
	defer dst.Close()
	if old != nil && old.IsDir() {
		return exists(p)
	}
	return vol.replace(dst, base, old, content)
}

// locate opens the parent folder of p, which it creates if it is missing, and
// describes the entry at p; old is nil if there is none.
func (vol *openVolume) locate(p string) (dst *fsys.Folder, base string, old fs.FileInfo, err error) {
	if dst, base, err = vol.parent(p); err != nil {
		return nil, "", nil, err
	}
	old, err = dst.Lstat(base)
	if errors.Is(err, fs.ErrNotExist) {
		return dst, base, nil, nil
	}
	if err != nil {
		dst.Close()
	}
	return dst, base, old, err
}

// replace replaces base in dst by a new file with content, which keeps the mode and the owner of an
// old file: a script that is edited stays executable, and its server can still read it.
func (vol *openVolume) replace(dst *fsys.Folder, base string, old fs.FileInfo, content io.Reader) error {
	var credit int64
	mode := newFileMode
	o, err := newOwner(dst)
	if err != nil {
		return err
	}
	if old != nil {
		credit = onDisk(old)
	}
	if old != nil && old.Mode().IsRegular() {
		mode, o = old.Mode().Perm(), ownerOf(old)
	}
	x, err := vol.newTemp(o, credit)
	if err != nil {
		return err
	}
	defer x.close()
	if err := x.write(mode, func(f *os.File) error { return x.writeContent(f, content, false) }); err != nil {
		return err
	}
	var freed int64 // others may have replaced or removed the old file, and counted that, since the write began
	if info, err := dst.Lstat(base); err == nil {
		freed = onDisk(info)
	}
	if err := x.in.RenameTo(x.name, dst, base, 0); err != nil {
		return err
	}
	vol.quota.Add(x.Bytes() - freed)
	return dst.Sync()
}

// write creates the entry as a durable file, whose content fill writes.
func (x *temp) write(mode fs.FileMode, fill func(f *os.File) error) error {
	f, err := x.in.CreateNew(x.name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := x.owner.finish(f, mode); err != nil {
		return err
	}
	if err := fill(f); err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// writeContent writes content to the new file f of the entry, until content or the operation ends.
// sparse is that of reservedFile.
func (x *temp) writeContent(f *os.File, content io.Reader, sparse bool) error {
	buf := x.vol.m.bufs.Get().(*bufio.Writer)
	defer x.vol.m.bufs.Put(buf)
	out := &reservedFile{file: f, temp: x, sparse: sparse}
	buf.Reset(out)
	if _, err := buf.ReadFrom(operationReader{content, x.vol}); err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	if out.size == 0 {
		return x.Grow(blockBytes) // no data, but an inode
	}
	if out.end < out.size {
		return f.Truncate(out.size)
	}
	return nil
}

// operationReader ends with the operation: a slow source must not hold up a restore.
type operationReader struct {
	io.Reader
	vol *openVolume
}

// Read implements io.Reader.
func (r operationReader) Read(p []byte) (int, error) {
	if err := r.vol.ctxErr(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// reservedFile writes a new file of a temporary entry, and reserves each piece before. If sparse is
// true, blocks of zeros become holes, which no limit counts: then the content must have a bound of its
// own, and each piece but the last whole blocks.
type reservedFile struct {
	file      *os.File
	temp      *temp
	sparse    bool
	size, end int64 // of the content, and of what was written
}

// Write implements io.Writer.
func (w *reservedFile) Write(p []byte) (int, error) {
	if err := w.temp.vol.ctxErr(); err != nil {
		return 0, err
	}
	if grown := roundUp(w.size+int64(len(p))) - roundUp(w.size); grown > 0 {
		if err := w.temp.Grow(grown); err != nil {
			return 0, err
		}
	}
	write := func(from, to int) error {
		w.end = w.size + int64(to)
		_, err := w.file.WriteAt(p[from:to], w.size+int64(from))
		return err
	}
	var err error
	if w.sparse {
		err = backup.EachRun(p, write)
	} else {
		err = write(0, len(p))
	}
	if err != nil {
		return 0, err
	}
	w.size += int64(len(p))
	return len(p), nil
}
