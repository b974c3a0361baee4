package volume

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"syscall"

	"berth/runtime/volume/quota"
)

// maxEmptyTries is how often a folder is emptied while a tenant keeps adding
// entries.
const maxEmptyTries = 8

// remover removes trees. It holds few handles and little memory at any depth and
// breadth of a tree. Each system call has the handle of an open folder and a single
// name, and follows no link. So nothing outside the volume is removed, whatever
// folders a tenant renames and swaps meanwhile.
type remover struct {
	ctx   context.Context
	freed int64 // bytes on disk
}

// remove removes the entry name of d and everything in it. If ctx ends first, it
// can be called again.
func (r *remover) remove(d *dirfd, name string) error {
	s, err := newDescent(d)
	if err != nil {
		return err
	}
	defer s.close()
	if err := r.removeEntry(s, name); err != nil {
		return err
	}
	for s.depth() > 0 {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		name, err := s.last().names.read(s.dir())
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
func (r *remover) removeEntry(s *descent, name string) error {
	info, err := s.dir().lstat(name)
	if err != nil {
		return ignoreMissing(err)
	}
	if !info.IsDir() {
		return r.count(info, s.dir().unlink(name))
	}
	err = s.dir().rmdir(name)
	if !errors.Is(err, syscall.ENOTEMPTY) {
		return r.count(info, err)
	}
	if err := s.enter(name); err != nil {
		return ignoreGone(err)
	}
	s.last().size = quota.OnDisk(info)
	return nil
}

// leave removes the current folder of s, whose entries were removed.
func (r *remover) leave(s *descent) error {
	last := *s.last()
	err := s.leave()
	if errors.Is(err, errMoved) { // within the volume: the walk may come to it again
		return nil
	}
	if err != nil {
		return err
	}
	err = s.dir().rmdir(last.name)
	switch {
	case err == nil:
		r.freed += last.size
	case errors.Is(err, syscall.ENOTEMPTY) && last.retries < maxEmptyTries:
		if err := s.enter(last.name); err != nil {
			return ignoreGone(err)
		}
		s.last().size, s.last().retries = last.size, last.retries+1
		return nil
	case errors.Is(err, syscall.ENOTDIR): // replaced by another entry
		return r.removeEntry(s, last.name)
	}
	return ignoreMissing(err)
}

// count adds the bytes of a removed entry. It ignores that the entry is gone, or
// that a folder and a file were swapped: then removing the parent fails, and the
// parent is read again.
func (r *remover) count(info fs.FileInfo, err error) error {
	if err == nil {
		r.freed += quota.OnDisk(info)
	}
	if errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return ignoreMissing(err)
}

// removeTree removes the entry name of d and everything in it, and returns the
// bytes on disk that it freed.
func removeTree(ctx context.Context, d *dirfd, name string) (freed int64, err error) {
	r := remover{ctx: ctx}
	err = r.remove(d, name)
	return r.freed, err
}
