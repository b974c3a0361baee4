package volume

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
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
	dst, base, old, err := vol.locate(p)
	if err == nil && old != nil && old.Mode()&fs.ModeSymlink != 0 {
		dst.close()
		var name string
		if name, err = vol.follow(p); err != nil {
			return err
		}
		dst, base, old, err = vol.locate(name)
	}
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
	if err := copyBytes(vol, f, content, res); err != nil {
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

// copyBytes copies src to f until src or the operation ends. It reserves each piece
// before it writes it.
func copyBytes(vol *openVolume, f *os.File, src io.Reader, res *reservation) error {
	buf := vol.m.bufs.Get().(*[]byte)
	defer vol.m.bufs.Put(buf)
	for empty := true; ; empty = false {
		if err := vol.ctxErr(); err != nil {
			return err
		}
		n, end := fillBuffer(vol, src, *buf)
		if n == 0 && empty {
			if err := res.Grow(blockBytes); err != nil {
				return err
			}
		}
		if n > 0 {
			if err := res.Grow(roundUp(int64(n))); err != nil {
				return err
			}
			if _, err := f.Write((*buf)[:n]); err != nil {
				return err
			}
		}
		if errors.Is(end, io.EOF) {
			return nil
		}
		if end != nil {
			return end
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
