package volume

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"strings"
	"sync"

	"berth/runtime/volume/walk"
)

// removingPrefix begins the names, beside the volumes, of volumes that are being removed.
// The volume's id follows.
const removingPrefix = ".removing-"

// leftovers holds the names, beside the volumes, of trees that are being removed, restored
// or replaced, or that a crash left so. They are read once, as each volume looks for its
// own: after that only this process makes more, and adds them. No tenant can.
type leftovers struct {
	mu    sync.Mutex
	base  inode // the directory that was read, which a mount may replace
	names map[string]bool
}

func newLeftovers() *leftovers { return &leftovers{names: map[string]bool{}} }

// find returns name, and the names in base that begin with it and a dash: those of replaced
// trees, and of what an older version of berth moved up from one.
func (l *leftovers) find(base *walk.Dir, name string) (found []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.read(base); err != nil {
		return nil, err
	}
	found = []string{name} // whether it is known or not: what it costs to look is little
	for n := range l.names {
		if strings.HasPrefix(n, name+"-") {
			found = append(found, n)
		}
	}
	return found, nil
}

func (l *leftovers) read(base *walk.Dir) error {
	info, err := base.File().Stat()
	if err != nil || inodeOf(info) == l.base {
		return err
	}
	err = base.Each(func(name string) error {
		if strings.HasPrefix(name, removingPrefix) || strings.HasPrefix(name, restoringPrefix) {
			l.names[name] = true
		}
		return nil
	})
	if err == nil {
		l.base = inodeOf(info)
	}
	return err
}

// add adds a name. Call it before the tree gets it.
func (l *leftovers) add(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names[name] = true
}

// drop drops the name of a tree that is gone.
func (l *leftovers) drop(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.names, name)
}

// removeVolume renames the volume's directory, and removes it. While the tree of an earlier
// removal has the new name, it removes that first.
func (l *leftovers) removeVolume(ctx context.Context, base *os.Root, id string) error {
	gone := removingPrefix + id
	for {
		l.add(gone)
		moved := base.Rename(id, gone)
		if moved != nil && !errors.Is(moved, fs.ErrNotExist) && !errors.Is(moved, fs.ErrExist) {
			return moved
		}
		if err := l.remove(ctx, base, gone); err != nil || !errors.Is(moved, fs.ErrExist) {
			return err
		}
	}
}

// remove removes the trees of base that find returns for a name.
func (l *leftovers) remove(ctx context.Context, base *os.Root, name string) error {
	s := sweeper{ctxErr: ctx.Err, steps: math.MaxInt64}
	return s.removeLeftovers(l, base, name)
}

func (s *sweeper) removeLeftovers(l *leftovers, base *os.Root, name string) error {
	d, err := walk.OpenDir(base, root)
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := l.find(d, name)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := s.remove(d, []string{n}); err != nil {
			return err
		}
		l.drop(n)
	}
	return nil
}
