package volume

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"berth/runtime/volume/backup"
	"berth/runtime/volume/fsys"
)

// Write writes content to the file at p, and describes the new file. It writes a durable temporary
// file first and then replaces p. If it fails, or reading content fails, the old file stays
// unchanged; missing parents that it has created stay, unless check has refused.
//
// Write fails with the error of check, which is called with the description of the old file, or nil if
// there is none: before content is read, and again just before the old file is replaced. Between that
// call and the replacement nothing else replaces the file but a program in a container. A nil check
// allows any file.
func (m *Manager) Write(ctx context.Context, id, p string, content io.Reader,
	check func(old fs.FileInfo) error) (written fs.FileInfo, err error) {
	p, err = parseEntry(p)
	if err != nil {
		return nil, err
	}
	err = m.change(ctx, id, p, func(vol *Volume) (err error) {
		written, err = vol.write(p, content, check)
		return err
	})
	return written, err
}

func (vol *Volume) write(p string, content io.Reader, check func(old fs.FileInfo) error) (fs.FileInfo, error) {
	name, err := vol.follow(p)
	if err != nil {
		return nil, err
	}
	if place, err := vol.placeOf(name); err == nil && vol.denied.match(place, 0) { // before parents are made
		return nil, deniedFile(place)
	}
	if check == nil {
		check = func(fs.FileInfo) error { return nil }
	}
	if _, err := vol.root.Stat(path.Dir(name)); errors.Is(err, fs.ErrNotExist) { // no refusal leaves new parents
		if err := check(nil); err != nil {
			return nil, err
		}
	}
	dst, base, old, err := vol.locate(name)
	if err != nil {
		return nil, err
	}
	defer dst.Close()
	if old != nil && old.IsDir() {
		return nil, exists(p)
	}
	if err := check(old); err != nil {
		return nil, err
	}
	return vol.replace(dst, base, replacement{old, content, check})
}

// locate opens the parent folder of p, which it creates if it is missing, and
// describes the entry at p; old is nil if there is none.
func (vol *Volume) locate(p string) (dst *fsys.Folder, base string, old fs.FileInfo, err error) {
	if dst, base, err = vol.parent(p); err != nil {
		return nil, "", nil, err
	}
	if err = vol.allowFound(dst, base); err == nil {
		old, err = dst.Lstat(base)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return dst, base, nil, nil
	}
	if err != nil {
		dst.Close()
	}
	return dst, base, old, err
}

// replacement replaces a file by a new one.
type replacement struct {
	old     fs.FileInfo // nil: there is none
	content io.Reader
	check   func(old fs.FileInfo) error // see Manager.Write
}

// replace replaces base in dst by a new file, which keeps the mode and the owner of an
// old file: a script that is edited stays executable, and its server can still read it.
func (vol *Volume) replace(dst *fsys.Folder, base string, r replacement) (fs.FileInfo, error) {
	var credit int64
	mode, old := newFileMode, r.old
	o, err := newOwner(dst)
	if err != nil {
		return nil, err
	}
	if old != nil {
		credit = onDisk(old)
	}
	if old != nil && old.Mode().IsRegular() {
		mode, o = old.Mode().Perm(), ownerOf(old)
	}
	x, err := vol.newTemp(o, credit)
	if err != nil {
		return nil, err
	}
	defer x.close()
	x.durable = true
	err = x.newFile(x.in, x.name, attributes{owner: o, mode: mode}, func(f *os.File) error { return x.writeContent(f, r.content, false) })
	if err != nil {
		return nil, err
	}
	written, err := x.in.Lstat(x.name)
	if err != nil {
		return nil, err
	}
	freed, err := x.replace(dst, base, r.check)
	if err != nil {
		return nil, err
	}
	x.Commit(x.Bytes() - freed)
	return written, dst.Sync()
}

// replace gives the complete entry the name base in dst, unless check refuses what has it now: others
// may have replaced or removed the old file, and counted that, since the write began. It returns how
// many bytes on disk that file had.
func (x *temp) replace(dst *fsys.Folder, base string, check func(old fs.FileInfo) error) (freed int64, err error) {
	x.vol.replacing.Lock()
	defer x.vol.replacing.Unlock()
	for range createTries {
		var old fs.FileInfo
		old, err = dst.Lstat(base)
		missing := errors.Is(err, fs.ErrNotExist)
		if missing {
			old, err = nil, nil
		}
		if err == nil {
			err = check(old)
		}
		if err != nil {
			return 0, err
		}
		if !missing {
			return onDisk(old), x.in.RenameTo(x.name, dst, base, 0)
		}
		if err = x.in.RenameNew(x.name, dst, base); !errors.Is(err, fs.ErrExist) {
			return 0, err
		}
	}
	return 0, err
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
	vol *Volume
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
