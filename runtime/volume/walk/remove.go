package walk

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"syscall"
)

// maxEmptyTries is how often a folder is emptied while a tenant keeps adding
// entries.
const maxEmptyTries = 8

// remover removes trees. It holds few handles and little memory at any depth and
// breadth of a tree. Each system call has the handle of an open folder and a single
// name, and follows no link. So nothing outside the volume is removed, whatever
// folders a tenant renames and swaps meanwhile.
type remover struct {
	ctxErr func() error
	size   func(fs.FileInfo) int64
	freed  int64
}

// Remove removes the entry name of d and everything in it, and returns the sum of
// the sizes of what it removed. If ctx ends first, Remove can be called again.
func Remove(ctx context.Context, d *Dir, name string, size func(fs.FileInfo) int64) (freed int64, err error) {
	return RemoveWhile(ctx.Err, d, name, size)
}

// RemoveWhile is Remove that ends with an error of next, which it calls before each step.
func RemoveWhile(next func() error, d *Dir, name string, size func(fs.FileInfo) int64) (freed int64, err error) {
	r := remover{ctxErr: next, size: size}
	err = r.remove(d, name)
	return r.freed, err
}

func (r *remover) remove(d *Dir, name string) error {
	s, err := NewStack(d)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := r.removeEntry(s, name); err != nil {
		return err
	}
	for s.Depth() > 0 {
		if err := r.ctxErr(); err != nil {
			return err
		}
		name, err := s.Next()
		switch {
		case err == nil:
			err = r.removeEntry(s, name)
		case errors.Is(err, io.EOF):
			err = r.leave(s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeEntry removes an entry, or enters a folder that is not empty.
func (r *remover) removeEntry(s *Stack, name string) error {
	info, err := s.Dir().Lstat(name)
	if err != nil {
		return IgnoreMissing(err)
	}
	if !info.IsDir() {
		return r.count(info, s.Dir().Unlink(name))
	}
	err = s.Dir().Rmdir(name)
	if !errors.Is(err, syscall.ENOTEMPTY) {
		return r.count(info, err)
	}
	if err := s.Enter(name); err != nil {
		return ignoreGone(err)
	}
	s.Last().size = r.size(info)
	return nil
}

// leave removes the current folder of s, whose entries were removed.
func (r *remover) leave(s *Stack) error {
	last := *s.Last()
	err := s.Leave()
	if errors.Is(err, ErrMoved) { // within the volume: the walk may come to it again
		return nil
	}
	if err != nil {
		return err
	}
	err = s.Dir().Rmdir(last.name)
	switch {
	case err == nil:
		r.freed += last.size
	case errors.Is(err, syscall.ENOTEMPTY) && last.retries < maxEmptyTries:
		if err := s.Enter(last.name); err != nil {
			return ignoreGone(err)
		}
		s.Last().size, s.Last().retries = last.size, last.retries+1
		return nil
	case errors.Is(err, syscall.ENOTDIR): // replaced by another entry
		return r.removeEntry(s, last.name)
	}
	return IgnoreMissing(err)
}

// count adds the size of a removed entry. It ignores that the entry is gone, or that
// a folder and a file were swapped: then removing the parent fails, and the parent
// is read again.
func (r *remover) count(info fs.FileInfo, err error) error {
	if err == nil {
		r.freed += r.size(info)
	}
	if errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return IgnoreMissing(err)
}
