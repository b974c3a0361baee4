package cgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mostHandles is how many handles and mappings of one container are looked at.
const mostHandles = 1 << 20

// deleted ends the kernel's name of a file without a name.
const deleted = " (deleted)"

// ErrTooManyHandles reports that a container holds more handles and mappings
// than are looked at.
var ErrTooManyHandles = errors.New("too many handles")

// unlinked adds up files that have no name any more.
type unlinked struct {
	ctx    context.Context
	proc   string
	except uint64 // a device
	bytes  int64
	left   int // handles and mappings that are still to be looked at
	seen   map[file]bool
	memory map[uint64]bool // whether a device is a file system in memory
}

type file struct{ dev, ino uint64 }

// Unlinked returns the bytes on disk of the files that a container's processes
// have open or mapped and that have no name any more: no walk of a tree finds
// them. Each file counts once; those in memory (tmpfs, memfd) and those on the
// device except do not count, as something else bounds them. It is 0 where the
// container's processes cannot be seen from here. With ErrTooManyHandles the
// bytes are those found so far.
//
// A descriptor that was sent over a socket and not received yet is not seen.
func (r *Reader) Unlinked(ctx context.Context, containerID string, except uint64) (int64, error) {
	path, ok := r.find(containerID)
	if !ok {
		return 0, nil
	}
	u := &unlinked{ctx: ctx, proc: r.proc, except: except, left: mostHandles, seen: map[file]bool{}, memory: map[uint64]bool{}}
	err := eachLine(filepath.Join(r.group("memory", path), "cgroup.procs"), func(pid string) error {
		if pid == "0" { // of another pid namespace
			return nil
		}
		return u.process(pid)
	})
	if err != nil {
		return u.bytes, fmt.Errorf("files without a name of container %s: %w", containerID, err)
	}
	return u.bytes, nil
}

// process adds what one process holds. Its threads may have handles of their own.
func (u *unlinked) process(pid string) error {
	err := u.each(filepath.Join(u.proc, pid, "task"), func(tid string) error {
		if tid != pid && sameHandles(pid, tid) {
			return nil
		}
		return u.handles(filepath.Join(u.proc, pid, "task", tid, "fd"))
	})
	if err != nil {
		return err
	}
	return u.mappings(filepath.Join(u.proc, pid))
}

// sameHandles reports whether a thread shares the handles of its process.
func sameHandles(pid, tid string) bool {
	const kcmpFiles = 2
	a, errA := strconv.Atoi(pid)
	b, errB := strconv.Atoi(tid)
	if errA != nil || errB != nil {
		return false
	}
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpFiles, 0, 0, 0)
	return errno == 0 && order == 0
}

func (u *unlinked) handles(dir string) error {
	return u.each(dir, func(name string) error {
		link := filepath.Join(dir, name)
		target, err := os.Readlink(link)
		if err == nil && strings.HasSuffix(target, deleted) {
			u.add(link)
		}
		return nil
	})
}

func (u *unlinked) mappings(process string) error {
	return eachLine(filepath.Join(process, "maps"), func(line string) error {
		if err := u.next(); err != nil {
			return err
		}
		if at, _, ok := strings.Cut(line, " "); ok && strings.HasSuffix(line, deleted) {
			u.add(filepath.Join(process, "map_files", at))
		}
		return nil
	})
}

// add counts the file behind a link of the kernel's, unless it has a name.
func (u *unlinked) add(link string) {
	var st unix.Stat_t
	if unix.Stat(link, &st) != nil || st.Nlink > 0 || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return
	}
	f := file{uint64(st.Dev), st.Ino}
	if f.dev == u.except || u.seen[f] || u.inMemory(f.dev, link) {
		return
	}
	u.seen[f] = true
	u.bytes += st.Blocks * 512
}

func (u *unlinked) inMemory(dev uint64, link string) bool {
	memory, known := u.memory[dev]
	if !known {
		var st unix.Statfs_t
		memory = unix.Statfs(link, &st) == nil && (st.Type == unix.TMPFS_MAGIC || st.Type == unix.HUGETLBFS_MAGIC)
		u.memory[dev] = memory
	}
	return memory
}

// next ends the search when its caller has left, or after mostHandles.
func (u *unlinked) next() error {
	if u.left--; u.left < 0 {
		return ErrTooManyHandles
	}
	return u.ctx.Err()
}

// each calls f for each name in a folder of the kernel's. What has ended
// meanwhile, or may not be read, has none.
func (u *unlinked) each(dir string, f func(name string) error) error {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(512)
		for _, name := range names {
			if err := u.next(); err != nil {
				return err
			}
			if err := f(name); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

// eachLine calls f for each line of a file of the kernel's. One that is gone has
// none.
func eachLine(path string, f func(line string) error) error {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	for r := bufio.NewReaderSize(file, 64<<10); ; {
		line, err := r.ReadString('\n')
		if err != nil && (!errors.Is(err, io.EOF) || line == "") {
			return nil
		}
		if err := f(strings.TrimSuffix(line, "\n")); err != nil {
			return err
		}
	}
}
