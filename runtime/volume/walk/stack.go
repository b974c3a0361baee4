package walk

import (
	"errors"
	"io/fs"
	"strings"
	"time"
)

// openLevels is how many folders of a stack are open at once, besides its first one.
const openLevels = 8

// levelOverhead is the memory of a folder of a stack besides its name, in bytes.
const levelOverhead = 128

// ErrMoved reports that a folder on the way back up was moved. The stack then ends
// at the deepest folder that was not.
var ErrMoved = errors.New("folders were moved while they were read")

// Stack is the way from one folder down to another, opened by single names from
// handle to handle. At any depth only the last few folders are open. On the way
// back up a closed folder is opened again and must have the same device and
// inode.
type Stack struct {
	levels    []Level // the first is the start, and stays open
	nameBytes int64   // bytes of memory of levels
}

// Level is one folder of a stack. Mode and Time are the caller's.
type Level struct {
	Mode fs.FileMode
	Time time.Time

	dir   *Dir // nil means closed
	name  string
	id    inode
	names nameReader

	size    int64 // of a folder that Remove removes
	retries int   // how often its removal found new entries
}

// inode identifies a folder as long as it is open.
type inode struct{ dev, ino uint64 }

// NewStack returns a stack of one folder, d. The caller closes d after the stack.
func NewStack(d *Dir) (*Stack, error) {
	id, err := d.id()
	return &Stack{levels: []Level{{dir: d, id: id}}}, err
}

// Last returns the current folder.
func (s *Stack) Last() *Level { return &s.levels[len(s.levels)-1] }

// Dir returns the handle of the current folder, which the stack owns.
func (s *Stack) Dir() *Dir { return s.Last().dir }

// First returns the handle of the first folder.
func (s *Stack) First() *Dir { return s.levels[0].dir }

// Depth returns how many folders the current one is below the first.
func (s *Stack) Depth() int { return len(s.levels) - 1 }

// Name returns the name of the folder depth levels below the first.
func (s *Stack) Name(depth int) string { return s.levels[depth].name }

// Next returns the next name in the current folder, or io.EOF.
func (s *Stack) Next() (string, error) { return s.Last().names.read(s.Dir()) }

// path returns the path of the entry name in the current folder, from the first.
func (s *Stack) path(name string) string {
	var b strings.Builder
	for _, l := range s.levels[1:] {
		b.WriteString(l.name)
		b.WriteByte('/')
	}
	b.WriteString(name)
	return b.String()
}

// Enter goes to the folder name of the current one.
func (s *Stack) Enter(name string) error {
	d, err := s.Dir().Open(name)
	if err != nil {
		return err
	}
	id, err := d.id()
	if err != nil {
		d.Close()
		return err
	}
	s.levels = append(s.levels, Level{dir: d, name: name, id: id})
	s.nameBytes += levelOverhead + int64(len(name))
	if n := s.Depth() - openLevels; n > 0 {
		s.levels[n].close()
	}
	return nil
}

func (l *Level) close() {
	if l.dir != nil {
		l.dir.Close()
		l.dir = nil
	}
	l.names.drop()
}

// Leave goes back to the parent, or returns ErrMoved.
func (s *Stack) Leave() error {
	from := s.pop()
	defer from.dir.Close()
	up := s.Last()
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
		d.Close()
	}
	return s.reopen()
}

func (s *Stack) pop() Level {
	from := *s.Last()
	s.levels = s.levels[:len(s.levels)-1]
	s.nameBytes -= levelOverhead + int64(len(from.name))
	return from
}

// reopen goes down again from the first folder, as long as each folder is the same
// as before. It returns ErrMoved if it stops early.
func (s *Stack) reopen() error {
	for i := 1; i < len(s.levels); i++ {
		above, l := &s.levels[i-1], &s.levels[i]
		next, err := above.dir.Open(l.name)
		if err != nil && ignoreGone(err) != nil {
			return err
		}
		if err != nil || !same(next, l.id) {
			if err == nil {
				next.Close()
			}
			s.truncate(i)
			return ErrMoved
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
func (s *Stack) truncate(n int) {
	for len(s.levels) > n {
		from := s.pop()
		from.close()
	}
}

// same reports whether d is the folder id.
func same(d *Dir, id inode) bool {
	own, err := d.id()
	return err == nil && own == id
}

// Close closes all but the first folder.
func (s *Stack) Close() { s.truncate(1) }
