package fsys

import (
	"errors"
	"io"
	"io/fs"
	"slices"
)

// Entry is an entry of a tree.
type Entry struct {
	In   *Folder // that it is in
	up   string  // path of In from the start, with a slash at its end; empty for the start
	Name string  // in that folder
	Info fs.FileInfo
}

// Path returns the entry's path from the start.
func (e Entry) Path() string { return e.up + e.Name }

// Lookup returns the entry name of a folder, whose path from the start is at.
func Lookup(in *Folder, at, name string) (Entry, error) {
	info, err := in.Lstat(name)
	return Entry{in, below(at), name, info}, err
}

// below returns what begins the paths of the entries of a folder.
func below(at string) string {
	if at == "." {
		return ""
	}
	return at + "/"
}

// ErrTooDeep reports that a folder is not entered because of Walker.Depth.
var ErrTooDeep = errors.New("folders are nested too deeply")

// Walker reads a tree, each folder before its entries. It follows no links, and may miss entries that
// are moved meanwhile.
type Walker struct {
	Check func() error // called for each entry; the walk ends with its error
	Depth int          // levels of folders that it enters; it has two handles for each

	// Visit is called for each entry. The walk ends with its error; fs.SkipDir means that it does not
	// enter this one.
	Visit func(Entry) error
	// Within is called for each folder that was entered, and calls entries to have what is in it read. Nil
	// does only that.
	Within func(e Entry, entries func() error) error
	// Failed is called with the path of an entry that cannot be described or entered, or was removed or
	// replaced meanwhile, and for a folder that is too deep. The walk ends with its error. Nil: it ends with
	// err, unless the entry is missing.
	Failed func(path string, err error) error

	// Order is the memory for names of a walk in their order, which has each name once. Failed gets the error
	// of a folder whose names cannot be read, or are too many. Nil: the order of the disk. A walk in order has
	// one handle for each folder, not two: it closes Entry.In.File when it has read the names.
	Order *Names
}

// Walk reads the entries of a folder, which is at a level below the start. at is its path, "." for the
// start.
func (w *Walker) Walk(in *Folder, at string, level int) error {
	up := below(at)
	visit := func(name string, info fs.FileInfo, err error) error {
		e := Entry{in, up, name, info}
		if err := w.Check(); err != nil {
			return err
		}
		if err != nil {
			return w.fail(e.Path(), err)
		}
		switch err := w.Visit(e); {
		case errors.Is(err, fs.SkipDir):
			return nil
		case err != nil, !info.IsDir():
			return err
		}
		return w.Enter(e, level+1)
	}
	if w.Order == nil {
		return in.Each(visit)
	}
	names, held, err := w.Order.read(in, w.Check)
	in.File.Close()
	defer w.Order.release(held)
	if err != nil {
		return w.fail(at, err)
	}
	for _, name := range names {
		info, err := in.Lstat(name)
		if err := visit(name, info, err); err != nil {
			return err
		}
	}
	return nil
}

// Enter reads the entries of the folder e, which is at a level below the start.
func (w *Walker) Enter(e Entry, level int) error {
	if level >= w.Depth {
		return w.fail(e.Path(), ErrTooDeep)
	}
	sub, err := e.In.Enter(e.Name, e.Info)
	if err != nil {
		return w.fail(e.Path(), err)
	}
	defer sub.Close()
	entries := func() error { return w.Walk(sub, e.Path(), level) }
	if w.Within == nil {
		return entries()
	}
	return w.Within(e, entries)
}

func (w *Walker) fail(path string, err error) error {
	if w.Failed == nil {
		return IgnoreMissing(err)
	}
	return w.Failed(path, err)
}

// IgnoreMissing returns nil if err means that there is no such entry.
func IgnoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ErrTooManyNames reports that Names has too little memory for the names of a folder.
var ErrTooManyNames = errors.New("too many names")

const (
	nameOverhead = 32 // memory of a name besides its bytes
	linkOverhead = 96 // memory of a file with several hard links besides its path, in bytes
)

// Names is the memory for the names that one walk keeps.
type Names struct {
	Free  int64 // bytes
	links map[Inode]string
}

// take takes n bytes, and reports whether they were free.
func (n *Names) take(bytes int64) bool {
	if bytes > n.Free {
		return false
	}
	n.Free -= bytes
	return true
}

func (n *Names) release(bytes int64) { n.Free += bytes }

// read returns the names of a folder in order, and the memory that they take. A folder that changes while it
// is read may list a name twice.
func (n *Names) read(in *Folder, check func() error) (names []string, held int64, err error) {
	if _, err := in.File.Seek(0, io.SeekStart); err != nil {
		return nil, 0, err
	}
	for {
		if err := check(); err != nil {
			return nil, held, err
		}
		some, err := in.File.Readdirnames(NamesAtOnce)
		if errors.Is(err, io.EOF) {
			slices.Sort(names)
			return slices.Compact(names), held, nil
		}
		if err != nil {
			return nil, held, err
		}
		for _, name := range some {
			need := nameOverhead + int64(len(name))
			if !n.take(need) {
				return nil, held, ErrTooManyNames
			}
			held += need
		}
		names = append(names, some...)
	}
}

// First returns the path of another hard link of the same file that was added; empty if there is none.
func (n *Names) First(info fs.FileInfo) string {
	if Stat(info).Nlink < 2 { // one that was added may be removed, and its inode be in use again
		return ""
	}
	return n.links[InodeOf(info)]
}

// Add records the path of a file that has several hard links, if there is memory for it.
func (n *Names) Add(info fs.FileInfo, path string) {
	if Stat(info).Nlink < 2 || !n.take(linkOverhead+int64(len(path))) {
		return
	}
	if n.links == nil {
		n.links = map[Inode]string{}
	}
	n.links[InodeOf(info)] = path
}
