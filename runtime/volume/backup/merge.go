package backup

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

// Merge adds to the folder into, which Extract filled, the entries of old that the archive
// lacks. An entry of the archive wins, also over one of another type. The entries become hard
// links of those in old, which must be on the same file system, so that both trees are
// complete and no content is copied. Nothing in old is changed, and nobody else may change it
// meanwhile.
func Merge(ctx context.Context, old, into *os.Root, opt ExtractOptions) error {
	m := merger{ctx: ctx.Err, opt: opt}
	info, err := into.Stat(rootPath)
	if err != nil {
		return err
	}
	return m.folder(old, into, info, 0)
}

type merger struct {
	ctx func() error // the error of the context
	opt ExtractOptions
}

// folder adds the entries of old to into, which then has the attributes of info.
func (m *merger) folder(old, into *os.Root, info fs.FileInfo, depth int) error {
	if depth > maxDepth {
		return v1.Errorf(v1.SizeLimit, "The folders of the volume are nested deeper than %d", maxDepth)
	}
	from, err := old.Open(rootPath)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := into.Open(rootPath)
	if err != nil {
		return err
	}
	defer to.Close()
	for {
		names, err := from.Readdirnames(readNames)
		for _, name := range names {
			if err := m.entry(old, into, name, func() error {
				return unix.Linkat(int(from.Fd()), name, int(to.Fd()), name, 0)
			}, depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	st := stat(info)
	if err := own(to, attributes{mode: st.Mode & 0o7777, uid: int(st.Uid), gid: int(st.Gid)}); err != nil {
		return err
	}
	return into.Chtimes(rootPath, time.Time{}, info.ModTime())
}

// entry adds the entry name of old by link, or enters the folder of the same name.
func (m *merger) entry(old, into *os.Root, name string, link func() error, depth int) error {
	if err := m.ctx(); err != nil {
		return err
	}
	info, err := old.Lstat(name)
	if err != nil {
		return err
	}
	there, err := into.Lstat(name)
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case err != nil && !missing:
		return err
	case missing && !info.IsDir():
		return os.NewSyscallError("linkat", link())
	case missing:
		if err := m.opt.reserve(block); err != nil {
			return err
		}
		if err := into.Mkdir(name, 0o700); err != nil {
			return err
		}
		there = info
	case !info.IsDir() || !there.IsDir():
		return nil
	}
	return m.both(old, into, name, there, depth)
}

// both adds the entries of the folder name of old to the folder name of into.
func (m *merger) both(old, into *os.Root, name string, info fs.FileInfo, depth int) error {
	from, err := old.OpenRoot(name)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := into.OpenRoot(name)
	if err != nil {
		return err
	}
	defer to.Close()
	return m.folder(from, to, info, depth+1)
}
