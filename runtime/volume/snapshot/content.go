package snapshot

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// content is the content of a file while it is added. The size and the extents are
// those at the beginning, whatever happens to the file meanwhile.
type content struct {
	file   *os.File
	parts  []extent
	sparse bool // the file has holes, and its member begins with a map

	short  bool  // the file ended early; zeros fill it up
	failed error // of a read; zeros replace the rest
}

// newContent finds the extents of a file. A file without holes has one.
func newContent(f *os.File, info fs.FileInfo) *content {
	c := &content{file: f}
	size := info.Size()
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Blocks*512 < size {
		if c.parts, c.sparse = extents(f, size); c.sparse {
			c.parts = withEnd(c.parts, size)
			return c
		}
	}
	if size > 0 {
		c.parts = []extent{{0, size}}
	}
	return c
}

// stored returns the size of the member.
func (c *content) stored() (n int64) {
	for _, p := range c.parts {
		n += p.n
	}
	if c.sparse {
		n += mapSize(c.parts)
	}
	return n
}

// onDisk returns how many bytes on disk the extents take.
func onDisk(parts []extent) (n int64) {
	for _, p := range parts {
		n += roundUp(p.n)
	}
	return n
}

// content writes the content of a member and adds it to the hash.
func (x *writer) content(c *content) error {
	if c.sparse {
		if err := writeMap(io.MultiWriter(x.hash, x.out), c.parts); err != nil {
			return err
		}
	}
	for _, p := range c.parts {
		if err := x.part(c, p.off, p.n); err != nil {
			return err
		}
	}
	return nil
}

// part copies n bytes of the file at off, straight into the buffer of the compressor.
func (x *writer) part(c *content, off, n int64) error {
	for n > 0 {
		if err := x.ctxErr(); err != nil {
			return err
		}
		buf := x.out.buffer()
		buf = buf[:min(int64(len(buf)), n)]
		k := c.read(buf, off)
		x.hash.Write(buf[:k])
		if err := x.out.commit(k); err != nil {
			return err
		}
		off, n = off+int64(k), n-int64(k)
		if x.read += int64(k); x.opt.Progress != nil {
			x.opt.Progress(x.read)
		}
	}
	return nil
}

// read reads some bytes at off. It never returns 0: zeros stand for what the file does
// not have any more, or the host cannot read.
func (c *content) read(buf []byte, off int64) (n int) {
	var err error
	if !c.short && c.failed == nil {
		n, err = c.file.ReadAt(buf, off)
	}
	switch {
	case errors.Is(err, io.EOF):
		c.short = true
	case err != nil:
		c.failed = err
	}
	clear(buf[n:])
	return len(buf)
}
