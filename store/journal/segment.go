package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// segment is one file of a journal: lines of one role.
type segment struct {
	role       string
	start, end int64 // offsets of its first byte, and behind its last record
}

// maxSegments is how many segments of a role are kept: a container that is installed again and again
// has many small ones.
const maxSegments = 64

func (s segment) name() string { return fmt.Sprintf("%s-%020d.log", s.role, s.start) }

func (j *Journal) path(s segment) string { return filepath.Join(j.dir, s.name()) }

func (j *Journal) checkpointPath(role string) string { return filepath.Join(j.dir, role+".run") }

// loadSegments returns the segments in a directory by their offsets. The newest may end with a record
// that was cut.
func loadSegments(dir string) (segs []segment, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		role, rest, _ := strings.Cut(e.Name(), "-")
		start, bad := strconv.ParseInt(strings.TrimSuffix(rest, ".log"), 10, 64)
		s := segment{role: role, start: start}
		if bad != nil || s.name() != e.Name() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		s.end = start + info.Size()
		segs = append(segs, s)
	}
	slices.SortFunc(segs, func(a, b segment) int { return cmp.Compare(a.start, b.start) })
	for i := range len(segs) - 1 {
		segs[i].end = min(segs[i].end, segs[i+1].start)
	}
	return segs, err
}

// segments returns the segments of a role, or all if it is empty.
func (j *Journal) segments(role string) []segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	segs := make([]segment, 0, len(j.segs))
	for _, s := range j.segs {
		if role == "" || s.role == role {
			segs = append(segs, s)
		}
	}
	return segs
}

// write writes records of a role at the end of the journal.
func (j *Journal) write(role string, records []byte) error {
	s, err := j.open(role, int64(len(records)))
	if err == nil {
		_, err = j.file.WriteAt(records, s.end-s.start)
	}
	if err != nil {
		return errors.Join(err, j.close()) // a part of the records is truncated when the file is opened again
	}
	return nil
}

// open opens the newest segment, or begins one if that is full or of the other role. The newest is opened
// in both cases, which truncates the cut records: they would be a part of it again once the next ones are removed.
func (j *Journal) open(role string, more int64) (s segment, err error) {
	if n := len(j.segs); n > 0 {
		s = j.segs[n-1]
		err = j.reopen(s)
	}
	size := s.end - s.start
	fits := s.role == role && (size == 0 || size+more <= j.size)
	if gone := errors.Is(err, fs.ErrNotExist); err != nil && !gone || fits && !gone {
		return s, err
	}
	if err := j.close(); err != nil {
		return s, err
	}
	return j.begin(role)
}

// reopen opens the newest segment, if it was closed, without what a failed write left.
func (j *Journal) reopen(s segment) (err error) {
	if j.file != nil {
		return nil
	}
	if j.file, err = os.OpenFile(j.path(s), os.O_WRONLY, 0); err != nil {
		return err
	}
	return j.file.Truncate(s.end - s.start)
}

// close closes the newest segment until the next record.
func (j *Journal) close() (err error) {
	if j.file != nil {
		err = j.file.Close()
	}
	j.file = nil
	return err
}

// begin begins a segment, and removes the oldest of its role.
func (j *Journal) begin(role string) (s segment, err error) {
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return s, err
	}
	if !j.named {
		if err := writeID(j.dir, j.id); err != nil {
			return s, err
		}
		j.named = true
	}
	if err := j.removeOldest(role); err != nil {
		return s, err
	}
	if n := len(j.segs); n > 0 && j.segs[n-1].start == j.end.Offset { // an empty one, or what was cut
		if err := j.remove(j.segs[n-1]); err != nil {
			return s, err
		}
	}
	s = segment{role: role, start: j.end.Offset, end: j.end.Offset}
	if j.file, err = os.OpenFile(j.path(s), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return s, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.segs = append(j.segs, s)
	return s, nil
}

// removeOldest removes segments of a role for one that begins.
func (j *Journal) removeOldest(role string) error {
	own := j.segments(role)
	size := int64(0)
	for _, s := range own {
		size += s.end - s.start
	}
	for _, s := range own {
		if size <= j.size*int64(j.files-1) && len(own) < maxSegments {
			return nil
		}
		size -= s.end - s.start
		own = own[1:]
		if err := j.remove(s); err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) remove(s segment) error {
	j.mu.Lock()
	j.segs = slices.DeleteFunc(j.segs, func(other segment) bool { return other == s })
	j.mu.Unlock()
	if err := os.Remove(j.path(s)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// readID returns the id of the journal in a directory. It is false if there is none.
func readID(dir string) (string, bool) {
	text, err := os.ReadFile(filepath.Join(dir, "id"))
	id := strings.TrimSuffix(string(text), "\n")
	return id, err == nil && isID(id)
}

// writeID stores the id of a journal in one step: berth may be killed at any time.
func writeID(dir, id string) error { return replaceFile(filepath.Join(dir, "id"), []byte(id+"\n")) }

func replaceFile(path string, text []byte) error {
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
