package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

// writable opens the newest file, or rotates it when it would grow too large.
func (j *Journal) writable(more int64) (segment, error) {
	if j.file == nil {
		if err := j.open(); err != nil {
			return segment{}, err
		}
	}
	s := j.newest()
	if s.end == s.start || s.end-s.start+more <= j.size {
		return s, nil
	}
	err := j.file.Close()
	j.file = nil
	if err != nil {
		return segment{}, err
	}
	j.saveRemoved()
	if err := j.files.rotate(); err != nil {
		return segment{}, err
	}
	if err := j.open(); err != nil {
		return segment{}, err
	}
	return j.newest(), nil
}

// saveRemoved records up to where the next rotation removes lines.
func (j *Journal) saveRemoved() {
	j.mu.Lock()
	i := len(j.segs) - j.files.count
	if i >= 0 && !j.segs[i].last.IsZero() {
		j.checkpoint.removed = j.segs[i].last.UnixNano()
	}
	c := j.checkpoint
	j.mu.Unlock()
	_ = c.write(j.files.checkpointPath()) // a full disk must not stop the console: Write reports it
}

// open opens the file to write, and truncates it behind its last complete record. A
// file that is not the newest segment begins a new one.
func (j *Journal) open() error {
	file, info, err := j.files.create()
	if err != nil {
		return err
	}
	s := j.newest()
	known := s.info != nil && os.SameFile(s.info, info)
	size := int64(0)
	if known {
		size = s.end - s.start
	}
	if err := file.Truncate(size); err != nil {
		return errors.Join(err, file.Close())
	}
	j.file = file
	j.files.trim()
	if !known {
		j.mu.Lock()
		j.segs = append(j.segs, segment{info: info, start: j.end, end: j.end})
		j.segs = j.segs[max(0, len(j.segs)-j.files.count):]
		j.mu.Unlock()
	}
	return nil
}

func (j *Journal) newest() segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.segs) == 0 {
		return segment{}
	}
	return j.segs[len(j.segs)-1]
}

func (j *Journal) segments() []segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.segs)
}
