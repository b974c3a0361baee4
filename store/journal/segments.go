package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// segment is one file of a journal.
type segment struct {
	info       os.FileInfo // identifies the file, whatever it has been renamed to
	start, end int64       // offsets of its first byte, and behind its last complete record
	last       time.Time   // of its last record; zero: it has none
}

// files names the files of one journal: <role>.log is written, <role>.log.1 is the
// one before it, and so on.
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

// load returns the files that exist, oldest first. A segment ends behind its last
// complete record; the writer will truncate the newest file there.
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

// measure returns a file's segment, with the end of its last complete record.
func measure(file *os.File) (segment, error) {
	info, err := file.Stat()
	if err != nil {
		return segment{}, err
	}
	end := info.Size()
	for b := (backwardReader{r: file, to: end}); ; {
		rec, more, err := b.next()
		if err != nil {
			return segment{}, err
		}
		if at, _, ok := parseHeader(rec.data); !more || (ok && rec.complete) {
			return segment{info: info, end: end, last: at}, nil
		}
		end = rec.off
	}
}

// open opens the file of a segment under its present name. Files are renamed from
// newer names to older ones, so a search in that order cannot miss it.
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

// rotate renames the files for a new one to be written, and removes the oldest.
func (f files) rotate() error {
	if f.count == 1 {
		return os.RemoveAll(f.path(0)) // a missing file is no error
	}
	for i := f.count - 2; i >= 0; i-- {
		if err := os.Rename(f.path(i), f.path(i+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// trim removes the files beyond count, which was larger once.
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
