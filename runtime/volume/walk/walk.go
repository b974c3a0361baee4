package walk

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
)

// Entry is one entry of a folder. It is valid until the function that received it
// returns.
type Entry struct {
	Dir  *Dir   // its folder
	Name string // in that folder
	Info fs.FileInfo
	up   string // path of the first folder of stack, with a trailing slash
	in   *Stack // nil means that Dir is the first folder
}

// Lookup returns the entry name of d. up is the path of d with a trailing slash.
func Lookup(d *Dir, up, name string) (Entry, error) {
	info, err := d.Lstat(name)
	return Entry{Dir: d, Name: name, Info: info, up: up}, err
}

// Path returns the entry's path.
func (e Entry) Path() string {
	if e.in == nil {
		return e.up + e.Name
	}
	return e.up + e.in.path(e.Name)
}

// Walker visits a tree, each folder before its entries, in the order of the disk.
// It follows no links and holds a few handles at any depth. It may miss entries
// that are moved meanwhile.
type Walker struct {
	CtxErr       func() error // returns the error of the operation's context
	MaxDepth     int          // levels below the start; 0 means that only MaxNameBytes bounds them
	MaxNameBytes int64        // bytes of memory of the names from the start; 0 means no bound
	// Visit is called for each entry. The walk does not enter a folder for which it
	// returns fs.SkipDir.
	Visit func(Entry) error
	// OnFailed is called for an entry that cannot be examined or entered. The walk ends
	// with its error. Nil means that the walk ends with err.
	OnFailed  func(e Entry, err error) error
	OnTooDeep func(Entry) error // called for a folder below MaxDepth
	// OnLeave is called after the walk left folders; depth is that of the current
	// one. It may be nil.
	OnLeave func(depth int) error
	// Skip reports whether to skip an entry. top is true for entries of the start
	// folder. It may be nil.
	Skip func(top bool, name string) bool
}

// Walk visits the entries below start. up is the path of start with a trailing
// slash. MaxDepth counts from level folders above start.
func (w *Walker) Walk(start *Dir, up string, level int) error {
	s, err := NewStack(start)
	if err != nil {
		return err
	}
	defer s.Close()
	for {
		if err := w.CtxErr(); err != nil {
			return err
		}
		name, err := s.Next()
		switch {
		case err == nil:
			err = w.visitEntry(s, name, up, level)
		case !errors.Is(err, io.EOF):
			return err
		case s.Depth() == 0:
			return nil
		default:
			err = w.leave(s)
		}
		if err != nil {
			return err
		}
	}
}

func (w *Walker) leave(s *Stack) error {
	if err := s.Leave(); err != nil && !errors.Is(err, ErrMoved) {
		return err
	}
	return w.notifyLeave(s)
}

func (w *Walker) notifyLeave(s *Stack) error {
	if w.OnLeave == nil {
		return nil
	}
	return w.OnLeave(s.Depth())
}

// visitEntry visits an entry. It skips one that was removed since its name was read.
func (w *Walker) visitEntry(s *Stack, name, up string, level int) error {
	if w.Skip != nil && w.Skip(s.Depth() == 0 && up == "", name) {
		return nil
	}
	e, err := Lookup(s.Dir(), up, name)
	e.in = s
	if err != nil {
		return w.failed(e, IgnoreMissing(err))
	}
	if err := w.Visit(e); err != nil || !e.Info.IsDir() {
		if e.Info.IsDir() && errors.Is(err, fs.SkipDir) {
			return nil
		}
		return err
	}
	if w.tooDeep(s, level) {
		return w.OnTooDeep(e)
	}
	if err := s.Enter(name); err != nil {
		return errors.Join(w.failed(e, ignoreGone(err)), w.notifyLeave(s))
	}
	return nil
}

func (w *Walker) failed(e Entry, err error) error {
	if err == nil || w.OnFailed == nil {
		return err
	}
	return w.OnFailed(e, err)
}

func (w *Walker) tooDeep(s *Stack, level int) bool {
	return w.MaxDepth > 0 && level+s.Depth()+1 >= w.MaxDepth || w.MaxNameBytes > 0 && s.nameBytes > w.MaxNameBytes
}

// IgnoreMissing returns nil if err means that there is no such entry.
func IgnoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ignoreGone returns nil if err means that a folder was removed or replaced.
func ignoreGone(err error) error {
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return nil
	}
	return IgnoreMissing(err)
}
