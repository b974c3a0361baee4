package stream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// segment is one file of a journal. Offsets count the bytes of the whole
// journal since it was loaded, over all of its files.
type segment struct {
	info       os.FileInfo // which file it is, whatever it is called by now
	start, end int64       // of its first byte, and past its last whole record
}

// files are the names of one console's files: <role>.log is written, <role>.log.1
// is the one before it, and so on.
type files struct {
	dir, role string
	count     int
}

func (f files) path(i int) string {
	if i == 0 {
		return filepath.Join(f.dir, f.role+".log")
	}
	return filepath.Join(f.dir, fmt.Sprintf("%s.log.%d", f.role, i))
}

func (f files) checkpointPath() string { return filepath.Join(f.dir, f.role+".run") }

// load finds the files that are there, oldest first. What follows the last
// whole record of the newest is left out; the writer will cut it off.
func (f files) load() ([]segment, error) {
	var segs []segment
	off := int64(0)
	for i := f.count - 1; i >= 0; i-- {
		file, err := os.Open(f.path(i))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s, err := measure(file)
		file.Close()
		if err != nil {
			return nil, err
		}
		s.start, s.end = off, off+s.end
		off = s.end
		segs = append(segs, s)
	}
	return segs, nil
}

// measure finds the end of the last whole record of a file.
func measure(file *os.File) (segment, error) {
	info, err := file.Stat()
	if err != nil {
		return segment{}, err
	}
	end := info.Size()
	for b := (backward{r: file, to: end}); ; {
		rec, more, err := b.next()
		if err != nil {
			return segment{}, err
		}
		if _, _, ok := parseHeader(rec.data); !more || (ok && rec.whole) {
			return segment{info: info, end: end}, nil
		}
		end = rec.off
	}
}

// open finds a segment's file under the name that it has by now. Files move
// from newer names to older ones, so a search in that order cannot miss it.
func (f files) open(s segment) (*os.File, error) {
	for i := range f.count {
		file, err := os.Open(f.path(i))
		if err != nil {
			continue
		}
		if info, err := file.Stat(); err == nil && os.SameFile(info, s.info) {
			return file, nil
		}
		file.Close()
	}
	return nil, fs.ErrNotExist
}

// shift makes room for a new file to be written; the oldest one goes.
func (f files) shift() error {
	if f.count == 1 {
		return ignoreMissing(os.Remove(f.path(0)))
	}
	for i := f.count - 2; i >= 0; i-- {
		if err := ignoreMissing(os.Rename(f.path(i), f.path(i+1))); err != nil {
			return err
		}
	}
	return nil
}

// trim removes files that an earlier, larger count has left.
func (f files) trim() {
	for i := f.count; os.Remove(f.path(i)) == nil; i++ {
	}
}

func (f files) create() (*os.File, os.FileInfo, error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return nil, nil, err
	}
	file, err := os.OpenFile(f.path(0), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// found is a record and where it begins. A part without a line feed is not whole.
type found struct {
	data  []byte // without the line feed; valid until the next one
	off   int64
	whole bool
}

// backward walks the records between two offsets of a file, the last one first,
// and reads block by block.
type backward struct {
	r        io.ReaderAt
	from, to int64  // what is not read yet
	rest     []byte // read and not handed out; it begins at to
	ended    bool   // a line feed follows rest
}

const backwardBlock = 64 << 10

// next returns the record before the last one. It is false at the beginning.
func (b *backward) next() (found, bool, error) {
	for {
		i := bytes.LastIndexByte(b.rest, '\n')
		switch {
		case i >= 0:
			f := found{data: b.rest[i+1:], off: b.to + int64(i) + 1, whole: b.ended}
			b.rest, b.ended = b.rest[:i], true
			if f.whole || len(f.data) > 0 {
				return f, true, nil
			}
		case b.to > b.from:
			if err := b.fill(); err != nil {
				return found{}, false, err
			}
		default:
			f := found{data: b.rest, off: b.from, whole: b.ended}
			b.rest, b.ended = nil, false
			return f, f.whole || len(f.data) > 0, nil
		}
	}
}

func (b *backward) fill() error {
	n := min(backwardBlock, b.to-b.from)
	block := make([]byte, n, n+int64(len(b.rest)))
	if _, err := b.r.ReadAt(block, b.to-n); err != nil {
		return err
	}
	b.to -= n
	b.rest = append(block, b.rest...)
	return nil
}
