package volume

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"syscall"
)

// emptyTries is how often a folder is emptied into which a tenant goes on
// putting something.
const emptyTries = 8

// reaper removes trees. It holds few handles and little memory whatever a tree's
// depth and breadth. Every call has the handle of an open folder and a single
// name, and follows no link; so a tenant may rename and swap folders all the
// while, and nothing but what is in the volume is removed.
type reaper struct {
	ctx   context.Context
	freed int64 // bytes on disk
}

// remove removes the entry name of d with all that is in it. When ctx ends first
// it can be called again.
func (r *reaper) remove(d *dirfd, name string) error {
	s, err := newDescent(d)
	if err != nil {
		return err
	}
	defer s.close()
	if err := r.one(s, name); err != nil {
		return err
	}
	for s.depth() > 0 {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		name, err := s.last().names.read(s.dir())
		switch {
		case err == nil:
			err = r.one(s, name)
		case errors.Is(err, io.EOF):
			err = r.leave(s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// one removes an entry, or goes into it.
func (r *reaper) one(s *descent, name string) error {
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
	s.last().size = onDisk(info)
	return nil
}

// leave removes the folder that s is in, whose entries are gone.
func (r *reaper) leave(s *descent) error {
	last := *s.last()
	err := s.leave()
	if errors.Is(err, errMoved) { // to elsewhere in the volume, where it may come by again
		return nil
	}
	if err != nil {
		return err
	}
	err = s.dir().rmdir(last.name)
	switch {
	case err == nil:
		r.freed += last.size
	case errors.Is(err, syscall.ENOTEMPTY) && last.mess < emptyTries:
		if err := s.enter(last.name); err != nil {
			return ignoreGone(err)
		}
		s.last().size, s.last().mess = last.size, last.mess+1
		return nil
	case errors.Is(err, syscall.ENOTDIR): // something else was put there
		return r.one(s, last.name)
	}
	return ignoreMissing(err)
}

// count adds what was removed. That somebody else removed it is no error; nor is
// it that a folder and a file were swapped: what is there now keeps the folder
// above from being removed, which is then read again.
func (r *reaper) count(info fs.FileInfo, err error) error {
	if err == nil {
		r.freed += onDisk(info)
	}
	if errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return ignoreMissing(err)
}

// reap removes the entry name of d, and returns how many bytes on disk are free
// by that.
func reap(ctx context.Context, d *dirfd, name string) (freed int64, err error) {
	r := reaper{ctx: ctx}
	err = r.remove(d, name)
	return r.freed, err
}
