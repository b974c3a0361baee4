package volume

import (
	"bytes"
	"errors"
	"io"
	"os"

	v1 "berth/api/v1"
	"berth/runtime/volume/quota"
)

// ratioFrom is how many bytes any archive may extract to, whatever its size.
const ratioFrom = 64 << 20

// file extracts a regular file. It keeps the permission bits only, without set-uid,
// set-gid and sticky.
func (u *extractor) file(in *dirfd, base string, e extractedEntry) error {
	if e.size > u.t.m.opt.Limits.ExtractBytes-u.bytes {
		return u.tooMuch()
	}
	f, err := in.create(base)
	if err != nil {
		return err
	}
	defer f.Close()
	before := u.bytes
	if err := u.copyContent(f, e.content); err != nil {
		return err
	}
	if u.bytes == before {
		if err := u.reservation.Grow(quota.Block); err != nil {
			return err
		}
	}
	if err := errors.Join(u.t.finish(f, e.mode.Perm()), f.Close()); err != nil {
		return err
	}
	if e.time.IsZero() {
		return nil
	}
	return in.chtimes(base, e.time)
}

func (u *extractor) tooMuch() error {
	return v1.Errorf(v1.SizeLimit, "Archive extracts to more than %d bytes", u.t.m.opt.Limits.ExtractBytes)
}

// copyContent writes content to f and counts each piece before it is written.
// Blocks of zeros become holes.
func (u *extractor) copyContent(f *os.File, content io.Reader) error {
	buf := u.t.m.bufs.Get().(*[]byte)
	defer u.t.m.bufs.Put(buf)
	var size int64
	var hole bool
	for {
		n, end := fillBuffer(content, *buf)
		if end != nil && !errors.Is(end, io.EOF) {
			return u.src.readError(end)
		}
		if err := u.count(int64(n)); err != nil {
			return err
		}
		if n > 0 { // readers may return io.EOF after their last piece, which may have been a hole
			var err error
			if hole, err = writeSparse(f, (*buf)[:n], size); err != nil {
				return err
			}
		}
		size += int64(n)
		if end == nil {
			continue
		}
		if hole {
			return f.Truncate(size)
		}
		return nil
	}
}

// count adds n bytes and returns an error if a limit is exceeded.
func (u *extractor) count(n int64) error {
	limits := u.t.m.opt.Limits
	u.bytes += n
	if u.bytes > limits.ExtractBytes {
		return u.tooMuch()
	}
	if err := errors.Join(u.ratio(u.bytes), u.t.ctxErr()); err != nil {
		return err
	}
	return u.reservation.Grow(quota.RoundUp(n))
}

// ratio returns an error if n bytes are too many for the size of the archive.
func (u *extractor) ratio(n int64) error {
	if most := u.t.m.opt.Limits.Ratio; n > ratioFrom && n/most > u.src.size {
		return v1.Errorf(v1.SizeLimit, "Archive extracts to more than %d times its size", most)
	}
	return nil
}

// writeSparse writes p at off without whole blocks of zeros. hole reports whether p
// ended with such a block.
func writeSparse(f *os.File, p []byte, off int64) (hole bool, err error) {
	var zeros [quota.Block]byte
	begin := 0
	for at := 0; at+quota.Block <= len(p); at += quota.Block {
		if p[at] != 0 || !bytes.Equal(p[at:at+quota.Block], zeros[:]) {
			hole = false
			continue
		}
		if err := writeAt(f, p[begin:at], off+int64(begin)); err != nil {
			return false, err
		}
		begin, hole = at+quota.Block, true
	}
	if begin < len(p) {
		hole = false
	}
	return hole, writeAt(f, p[begin:], off+int64(begin))
}

func writeAt(f *os.File, p []byte, off int64) error {
	if len(p) == 0 {
		return nil
	}
	_, err := f.WriteAt(p, off)
	return err
}
