package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// chunk is how many names of a folder are read at once.
const chunk = 512

// handsDeep is how many folders inside each other are held open at once.
const handsDeep = 48

// reaper removes the entries of root whose names begin with prefix. It holds
// few handles and little memory whatever the tree's depth and breadth: folders
// that are too deep are moved up to root under prefix and a number. A tenant
// may change the tree all the while.
type reaper struct {
	root   *os.Root
	prefix string
	freed  int64 // bytes on disk
	moved  int
}

// run works until nothing is left or ctx ends; it can be run again.
func (r *reaper) run(ctx context.Context) error {
	for {
		var names []string
		err := eachName(r.root, func(name string) error {
			if strings.HasPrefix(name, r.prefix) && len(names) < chunk {
				names = append(names, name)
			}
			return ctx.Err()
		})
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			if err := r.remove(ctx, r.root, name, "", 0); err != nil {
				return err
			}
		}
	}
}

// remove removes one entry; up is the path from root to its folder.
func (r *reaper) remove(ctx context.Context, in *os.Root, name, up string, depth int) error {
	info, err := in.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		err = in.Remove(name)
	} else if depth < handsDeep {
		err = r.empty(ctx, in, name, up+name, depth)
	} else {
		r.moved++
		return r.root.Rename(up+name, fmt.Sprintf("%s-%d-%d", r.prefix, os.Getpid(), r.moved))
	}
	if err == nil {
		r.freed += onDisk(info)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// empty removes a folder with what is in it. A tenant may add to it meanwhile,
// so it is tried a few times.
func (r *reaper) empty(ctx context.Context, in *os.Root, name, up string, depth int) (err error) {
	for range 8 {
		if err = syscallOf(in.Remove(name)); !errors.Is(err, syscall.ENOTEMPTY) {
			return err
		}
		d, oerr := openFolder(in, name)
		if oerr != nil {
			return oerr
		}
		oerr = eachName(d, func(child string) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return r.remove(ctx, d, child, up+"/", depth+1)
		})
		d.Close()
		if oerr != nil {
			return oerr
		}
	}
	return err
}

// syscallOf makes ENOTEMPTY of EEXIST, which some file systems say.
func syscallOf(err error) error {
	if errors.Is(err, syscall.EEXIST) {
		return syscall.ENOTEMPTY
	}
	return err
}

// eachName calls f for every name in the folder r, without holding them all.
func eachName(r *os.Root, f func(name string) error) error {
	d, err := r.OpenFile(root, dirFlags, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(chunk)
		for _, name := range names {
			if err := f(name); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
