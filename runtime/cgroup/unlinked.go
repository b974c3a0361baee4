package cgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxHandles is how many handles and mappings of one container are visited.
const maxHandles = 1 << 20

// deleted is the suffix of the kernel's name of an unlinked file.
const deleted = " (deleted)"

// ErrTooManyHandles reports that a container has more handles and mappings than
// Unlinked visits.
var ErrTooManyHandles = errors.New("too many handles")

// Unlinked is what a container's processes have open that no walk of a tree finds.
type Unlinked struct {
	Bytes int64 // on disk, of deleted files

	// InFlight is how many handles were sent over sockets of the container and not yet received.
	// Nobody can see which files they are.
	InFlight int
}

// unlinkedScan adds up unlinked files.
type unlinkedScan struct {
	Unlinked
	ctx     context.Context
	proc    string
	budget  int // handles and mappings that may still be visited
	seen    map[file]bool
	sockets map[string]bool // those that were visited
	memory  map[uint64]bool // reports whether a device is a file system in memory
}

type file struct{ dev, ino uint64 }

// Unlinked adds up the deleted files that a container's processes still have open or mapped. Each
// counts once. Files in memory (tmpfs, memfd) do not count, because other limits bound them. The
// result is zero if the container's processes are not visible. With ErrTooManyHandles it is what
// was found so far.
func (r *Reader) Unlinked(ctx context.Context, containerID string) (Unlinked, error) {
	path, ok := r.find(containerID)
	if !ok {
		return Unlinked{}, nil
	}
	u := &unlinkedScan{ctx: ctx, proc: r.proc, budget: maxHandles, seen: map[file]bool{}, sockets: map[string]bool{},
		memory: map[uint64]bool{}}
	err := u.eachLine(filepath.Join(r.group("memory", path), "cgroup.procs"), func(pid string) error {
		if pid == "0" { // in another pid namespace
			return nil
		}
		return u.process(pid)
	})
	if err != nil {
		return u.Unlinked, fmt.Errorf("files without a name of container %s: %w", containerID, err)
	}
	return u.Unlinked, nil
}

// process adds the files of one process. Threads may have separate handle tables. They
// share their mappings, which the kernel shows for each thread that has not ended: the
// first one may have.
func (u *unlinkedScan) process(pid string) error {
	last, mapped := "", false
	return u.each(filepath.Join(u.proc, pid, "task"), func(tid string) error {
		if last == "" || !sameHandles(last, tid) {
			last = tid
			if err := u.handles(filepath.Join(u.proc, pid, "task", tid)); err != nil {
				return err
			}
		}
		if mapped {
			return nil
		}
		n, err := u.mappings(filepath.Join(u.proc, tid))
		mapped = n > 0
		return err
	})
}

// sameHandles reports whether two threads share their handles.
func sameHandles(one, other string) bool {
	const kcmpFiles = 2
	a, errA := strconv.Atoi(one)
	b, errB := strconv.Atoi(other)
	if errA != nil || errB != nil {
		return false
	}
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpFiles, 0, 0, 0)
	return errno == 0 && order == 0
}

func (u *unlinkedScan) handles(thread string) error {
	return u.each(filepath.Join(thread, "fd"), func(name string) error {
		link := filepath.Join(thread, "fd", name)
		target, err := os.Readlink(link)
		switch {
		case err != nil:
		case strings.HasSuffix(target, deleted):
			u.add(link)
		case strings.HasPrefix(target, "socket:") && !u.sockets[target]:
			u.sockets[target] = true
			u.inFlight(filepath.Join(thread, "fdinfo", name))
		}
		return nil
	})
}

// inFlight adds the handles that wait in a socket. A socket that is in flight itself is not visible, but
// the one in which it waits is, or the kernel collects both.
func (u *unlinkedScan) inFlight(info string) {
	text, err := os.ReadFile(info)
	if err != nil {
		return // it was closed
	}
	if _, count, found := strings.Cut(string(text), "scm_fds:"); found {
		n, _ := strconv.Atoi(strings.TrimSpace(count))
		u.InFlight += n
	}
}

// mappings adds the mapped files of a thread, and returns the number of its mappings. A
// thread that has ended has none.
func (u *unlinkedScan) mappings(thread string) (n int, err error) {
	err = u.eachLine(filepath.Join(thread, "maps"), func(line string) error {
		n++
		if err := u.spend(); err != nil {
			return err
		}
		if at, _, ok := strings.Cut(line, " "); ok && strings.HasSuffix(line, deleted) {
			u.add(filepath.Join(thread, "map_files", at))
		}
		return nil
	})
	return n, err
}

// add adds the file behind a kernel link if the file has no name.
func (u *unlinkedScan) add(link string) {
	var st unix.Stat_t
	if unix.Stat(link, &st) != nil || st.Nlink > 0 || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return
	}
	f := file{uint64(st.Dev), st.Ino}
	if u.seen[f] || u.inMemory(f.dev, link) {
		return
	}
	u.seen[f] = true
	u.Bytes += st.Blocks * 512
}

func (u *unlinkedScan) inMemory(dev uint64, link string) bool {
	memory, known := u.memory[dev]
	if !known {
		var st unix.Statfs_t
		memory = unix.Statfs(link, &st) == nil && (st.Type == unix.TMPFS_MAGIC || st.Type == unix.HUGETLBFS_MAGIC)
		u.memory[dev] = memory
	}
	return memory
}

// spend counts one handle or mapping. It returns an error after maxHandles, or if
// the context ended.
func (u *unlinkedScan) spend() error {
	if u.budget--; u.budget < 0 {
		return ErrTooManyHandles
	}
	return u.ctx.Err()
}

// each calls f for each name in a kernel directory. A directory that is gone or not
// readable has none.
func (u *unlinkedScan) each(dir string, f func(name string) error) error {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(512)
		for _, name := range names {
			if err := u.spend(); err != nil {
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

// eachLine calls f for each line of a kernel file. A file that is gone has none.
func (u *unlinkedScan) eachLine(path string, f func(line string) error) error {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 4<<10), 64<<10) // a path has 4 KiB, and some characters are escaped
	for lines.Scan() {
		if err := f(lines.Text()); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("%s: %w", path, lines.Err())
	}
	return nil // a process that has ended has no more lines
}
