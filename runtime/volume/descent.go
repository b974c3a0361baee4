package volume

import (
	"errors"
	"io/fs"
	"strings"
	"time"
)

// openLevels is how many folders of a descent are open at once, besides its first
// one.
const openLevels = 8

// levelOverhead is the memory of a folder of a descent besides its name, in bytes.
const levelOverhead = 128

// errMoved reports that a folder on the way back up was moved. The descent is then
// in the deepest folder that was not.
var errMoved = errors.New("folders were moved while they were read")

// descent is a path from one folder down to another, opened by single names from
// handle to handle. At any depth only the last few folders are open. On the way
// back up a closed folder is opened again and must have the same device and
// inode.
type descent struct {
	levels    []level // the first is the start, and stays open
	nameBytes int64   // bytes of memory of levels
}

// level is one folder of a descent.
type level struct {
	dir   *dirfd // nil means closed
	name  string
	id    inode
	names dirReader

	// What the caller sets on a folder when it leaves it.
	mode    fs.FileMode
	time    time.Time
	size    int64 // bytes on disk
	retries int   // how often its removal found new entries
}

// newDescent returns a descent that starts in d. The caller closes d.
func newDescent(d *dirfd) (*descent, error) {
	id, err := d.id()
	return &descent{levels: []level{{dir: d, id: id}}}, err
}

func (s *descent) last() *level { return &s.levels[len(s.levels)-1] }

// dir returns the current folder.
func (s *descent) dir() *dirfd { return s.last().dir }

// depth returns how many folders the current one is below the first.
func (s *descent) depth() int { return len(s.levels) - 1 }

// path returns the path of the entry name in the current folder, from the first.
func (s *descent) path(name string) string {
	var b strings.Builder
	for _, l := range s.levels[1:] {
		b.WriteString(l.name)
		b.WriteByte('/')
	}
	b.WriteString(name)
	return b.String()
}

// enter goes to the folder name.
func (s *descent) enter(name string) error {
	d, err := s.dir().open(name)
	if err != nil {
		return err
	}
	id, err := d.id()
	if err != nil {
		d.close()
		return err
	}
	s.levels = append(s.levels, level{dir: d, name: name, id: id})
	s.nameBytes += levelOverhead + int64(len(name))
	if n := s.depth() - openLevels; n > 0 {
		s.levels[n].close()
	}
	return nil
}

func (l *level) close() {
	if l.dir != nil {
		l.dir.close()
		l.dir = nil
	}
	l.names.drop()
}

// leave goes back to the parent, or returns errMoved.
func (s *descent) leave() error {
	from := s.pop()
	defer from.dir.close()
	up := s.last()
	if up.dir != nil {
		return nil
	}
	d, err := from.dir.up()
	if err != nil && ignoreGone(err) != nil {
		return err
	}
	if err == nil && same(d, up.id) {
		up.dir = d
		return nil
	}
	if err == nil {
		d.close()
	}
	return s.reopen()
}

func (s *descent) pop() level {
	from := *s.last()
	s.levels = s.levels[:len(s.levels)-1]
	s.nameBytes -= levelOverhead + int64(len(from.name))
	return from
}

// reopen goes down again from the first folder, as long as each folder is the same
// as before. It returns errMoved if it stops early.
func (s *descent) reopen() error {
	for i := 1; i < len(s.levels); i++ {
		above, l := &s.levels[i-1], &s.levels[i]
		next, err := above.dir.open(l.name)
		if err != nil && ignoreGone(err) != nil {
			return err
		}
		if err != nil || !same(next, l.id) {
			if err == nil {
				next.close()
			}
			s.truncate(i)
			return errMoved
		}
		if i > 1 {
			above.close()
		}
		l.close()
		l.dir = next
	}
	return nil
}

// truncate keeps the first n folders and closes the others.
func (s *descent) truncate(n int) {
	for len(s.levels) > n {
		from := s.pop()
		from.close()
	}
}

// same reports whether d is the folder id.
func same(d *dirfd, id inode) bool {
	own, err := d.id()
	return err == nil && own == id
}

// close closes all but the first folder.
func (s *descent) close() { s.truncate(1) }
