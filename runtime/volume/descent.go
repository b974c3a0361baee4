package volume

import (
	"errors"
	"io/fs"
	"strings"
	"time"
)

// openLevels is how many folders of a descent are open at once, beside the one
// that it began in.
const openLevels = 8

// levelHeld is what a descent keeps of a folder beside its name.
const levelHeld = 128

// errMoved reports that a folder on the way back up is not where it was: the
// descent is then in the deepest folder that is.
var errMoved = errors.New("folders were moved while they were read")

// descent is the way from one folder down to another, by single names from
// handle to handle. However deep it is, only the last few folders are open. On
// the way back up a folder that was closed is opened again, and has to be the
// very same one, by device and inode.
type descent struct {
	levels []level // the first is the folder that it began in, and stays open
	held   int64   // bytes of the names
}

// level is one folder of a descent.
type level struct {
	dir   *dirfd // nil: closed
	name  string
	id    inode
	names names

	// For the folder that is made after it, when it is left.
	mode fs.FileMode
	time time.Time
	size int64 // bytes on disk
	mess int   // how often it was not empty when it was to be removed
}

// newDescent begins in d, which stays the caller's to close.
func newDescent(d *dirfd) (*descent, error) {
	id, err := d.id()
	return &descent{levels: []level{{dir: d, id: id}}}, err
}

func (s *descent) last() *level { return &s.levels[len(s.levels)-1] }

// dir is the folder that the descent is in.
func (s *descent) dir() *dirfd { return s.last().dir }

// depth is how many folders it is below the first.
func (s *descent) depth() int { return len(s.levels) - 1 }

// path is that of the entry name of the last folder, from the first one.
func (s *descent) path(name string) string {
	var b strings.Builder
	for _, l := range s.levels[1:] {
		b.WriteString(l.name)
		b.WriteByte('/')
	}
	b.WriteString(name)
	return b.String()
}

// enter goes into the folder name.
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
	s.held += levelHeld + int64(len(name))
	if n := s.depth() - openLevels; n > 0 {
		s.levels[n].shut()
	}
	return nil
}

func (l *level) shut() {
	if l.dir != nil {
		l.dir.close()
		l.dir = nil
	}
	l.names.drop()
}

// leave goes back to the folder above, or is errMoved.
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
	return s.again()
}

func (s *descent) pop() level {
	from := *s.last()
	s.levels = s.levels[:len(s.levels)-1]
	s.held -= levelHeld + int64(len(from.name))
	return from
}

// again goes down from the first folder as far as all is as it was. If that is
// not as far as before, it is errMoved.
func (s *descent) again() error {
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
			s.cut(i)
			return errMoved
		}
		if i > 1 {
			above.shut()
		}
		l.shut()
		l.dir = next
	}
	return nil
}

// cut leaves the first n folders.
func (s *descent) cut(n int) {
	for len(s.levels) > n {
		from := s.pop()
		from.shut()
	}
}

// same reports whether the folder is the one of id.
func same(d *dirfd, id inode) bool {
	own, err := d.id()
	return err == nil && own == id
}

// close closes all but the first folder.
func (s *descent) close() { s.cut(1) }
