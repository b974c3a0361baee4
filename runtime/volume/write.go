package volume

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
)

// Write makes content the file at p: under a temporary name first, durable,
// and then in the place of what was there. Folders above it are made. On any
// failure, of content too, what was there stays as it was.
func (f Files) Write(ctx context.Context, id, p string, content io.Reader) error {
	p, err := cleanEntry(p)
	if err != nil {
		return err
	}
	return f.on(ctx, id, p, func(t *tree) error { return t.write(p, content) })
}

func (t *tree) write(p string, content io.Reader) error {
	dst, base, old, err := t.place(p)
	if err == nil && old != nil && old.Mode()&fs.ModeSymlink != 0 {
		dst.close()
		var name string
		if name, err = t.follow(p); err != nil {
			return err
		}
		dst, base, old, err = t.place(name)
	}
	if err != nil {
		return err
	}
	defer dst.close()
	if old != nil && old.IsDir() {
		return exists(p)
	}
	top, err := t.top()
	if err != nil {
		return err
	}
	defer top.close()
	return replace(t, top, dst, base, old, content)
}

// place opens the folder that p is in, made if need be, and looks at what is
// there under p's last component; nil is nothing.
func (t *tree) place(p string) (dst *folder, base string, old fs.FileInfo, err error) {
	if dst, base, err = t.parent(p); err != nil {
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

// replace puts a new file with content in the place of base in dst.
func replace(t *tree, top, dst *folder, base string, old fs.FileInfo, content io.Reader) error {
	x := t.newTemp()
	defer x.release()
	sh := t.share()
	if old != nil {
		sh.credit = onDisk(old)
	}
	defer sh.end()
	made, err := t.fill(x, content, sh)
	var freed int64
	if err == nil {
		freed = occupied(dst, base)
		err = top.fd().moveTo(x.name, dst.fd(), base, 0)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(t.Remove(x.name)))
	}
	t.used.release(made - freed)
	return dst.dir.Sync()
}

// occupied is what is replaced now: since old was looked at, others may have
// replaced or removed it, and have counted that.
func occupied(dst *folder, base string) int64 {
	info, err := dst.Lstat(base)
	if err != nil {
		return 0
	}
	return onDisk(info)
}

// fill makes the temporary file with content, durable, and says what it
// occupies.
func (t *tree) fill(x *temp, content io.Reader, sh *reservation) (int64, error) {
	f, err := x.create()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := copyBytes(t, f, content, sh); err != nil {
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

// copyContent copies src to f until its end or the operation's, counting each piece
// before it is written.
func copyBytes(t *tree, f *os.File, src io.Reader, sh *reservation) error {
	buf := t.m.bufs.Get().(*[]byte)
	defer t.m.bufs.Put(buf)
	for empty := true; ; empty = false {
		if err := t.ctx(); err != nil {
			return err
		}
		n, end := fillBuffer(src, *buf)
		if n == 0 && empty {
			if err := sh.grow(blockSize); err != nil {
				return err
			}
		}
		if n > 0 {
			if err := sh.grow(roundUp(int64(n))); err != nil {
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

// fillBuffer reads until buf is full or src ends. Unlike io.ReadFull it tells
// a source that was cut off from one that is at its end.
func fillBuffer(src io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var k int
		k, err = src.Read(buf[n:])
		n += k
	}
	return n, err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
