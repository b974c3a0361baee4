package volume

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"berth/runtime/volume/backup"
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
	defer dst.close()
	if old != nil && old.IsDir() {
		return exists(p)
	}
	return vol.replace(dst, base, old, content)
}

// locate opens the parent folder of p, which it creates if it is missing, and
// describes the entry at p; old is nil if there is none.
func (vol *openVolume) locate(p string) (dst *folder, base string, old fs.FileInfo, err error) {
	if dst, base, err = vol.parent(p); err != nil {
		return nil, "", nil, err
	}
	old, err = dst.Lstat(base)
	if errors.Is(err, fs.ErrNotExist) {
		return dst, base, nil, nil
	}
	if err != nil {
		dst.close()
	}
	return dst, base, old, err
}

// replace replaces base in dst by a new file with content, which keeps the mode and the owner of an
// old file: a script that is edited stays executable, and its server can still read it.
func (vol *openVolume) replace(dst *folder, base string, old fs.FileInfo, content io.Reader) error {
	var credit int64
	mode := newFileMode
	o, err := dst.owner()
	if err != nil {
		return err
	}
	if old != nil {
		credit = onDisk(old)
	}
	if old != nil && old.Mode().IsRegular() {
		mode, o = old.Mode().Perm(), ownerOf(old)
	}
	x, err := vol.newTemp(o)
	if err != nil {
		return err
	}
	defer x.close()
	res := vol.newReservation(credit)
	defer res.Release()
	made, err := vol.writeTemp(x, mode, content, res)
	var freed int64
	if err == nil {
		freed = occupied(dst, base)
		err = x.in.rename(x.name, dst, base, 0)
	}
	if err != nil {
		return err
	}
	vol.quota.Add(made - freed)
	return dst.sync()
}

// occupied returns the bytes on disk of base now. Others may have replaced or
// removed it, and counted that, since the write began.
func occupied(dst *folder, base string) int64 {
	info, err := dst.Lstat(base)
	if err != nil {
		return 0
	}
	return onDisk(info)
}

// writeTemp writes content to the durable temporary file x and returns its bytes on
// disk.
func (vol *openVolume) writeTemp(x *temp, mode fs.FileMode, content io.Reader, res *reservation) (int64, error) {
	f, err := x.create(mode)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := vol.writeContent(f, content, res, false); err != nil {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return onDisk(info), f.Close()
}

// writeContent writes content to the new file f, until content or the operation ends. It reserves
// each piece before it writes it. If sparse is true, blocks of zeros become holes, which no limit
// counts: then content must have a bound of its own.
func (vol *openVolume) writeContent(f *os.File, content io.Reader, res *reservation, sparse bool) error {
	buf := vol.m.bufs.Get().(*[]byte)
	defer vol.m.bufs.Put(buf)
	var size, end int64 // of what content has, and of what was written
	for {
		n, last := fillBuffer(vol, content, *buf)
		if last != nil && !errors.Is(last, io.EOF) {
			return last
		}
		if err := errors.Join(vol.ctxErr(), res.Grow(roundUp(int64(n)))); err != nil {
			return err
		}
		write := func(from, to int) error {
			end = size + int64(to)
			_, err := f.WriteAt((*buf)[from:to], size+int64(from))
			return err
		}
		var err error
		if sparse {
			err = backup.EachRun((*buf)[:n], write)
		} else {
			err = write(0, n)
		}
		if err != nil {
			return err
		}
		size += int64(n)
		switch {
		case last == nil:
		case size == 0:
			return res.Grow(blockBytes) // no data, but an inode
		case end < size:
			return f.Truncate(size)
		default:
			return nil
		}
	}
}

// fillBuffer reads until buf is full, or src or the operation ends: a slow source must
// not hold up a restore. Unlike io.ReadFull it returns io.EOF for a short read at the end
// of src and keeps any other error.
func fillBuffer(vol *openVolume, src io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		if err := vol.ctxErr(); err != nil {
			return n, err
		}
		var k int
		k, err = src.Read(buf[n:])
		n += k
	}
	return n, err
}
