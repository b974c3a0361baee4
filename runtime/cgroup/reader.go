package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"berth/runtime"
)

// Source returns the stats of a container by the engine's id.
type Source interface {
	Stats(ctx context.Context, containerID string) (runtime.Stats, error)
}

// Reader reads stats from kernel files, and asks a fallback source for containers
// whose files are not visible. It is safe for concurrent use.
type Reader struct {
	cgroups  string // where the kernel's hierarchies are mounted
	proc     string
	fallback Source
	unified  bool  // cgroup v2
	memory   int64 // of the host, bytes
}

// New returns a reader of the host's files. next is the fallback; if it is nil, the
// error for a container without files is runtime.ErrNotRunning.
func New(next Source) *Reader { return newReader("/sys/fs/cgroup", "/proc", next) }

func newReader(cgroups, proc string, next Source) *Reader {
	_, err := os.Stat(filepath.Join(cgroups, "cgroup.controllers"))
	return &Reader{
		cgroups:  cgroups,
		proc:     proc,
		fallback: next,
		unified:  err == nil,
		memory:   hostMemory(proc),
	}
}

// Stats returns the resource usage of a container. Errors are those of the fallback.
func (r *Reader) Stats(ctx context.Context, containerID string) (runtime.Stats, error) {
	if path, ok := r.find(containerID); ok {
		if s, err := r.read(path); err == nil {
			return s, nil
		}
	}
	if r.fallback == nil {
		return runtime.Stats{}, fmt.Errorf("stats of container %s: %w", containerID, runtime.ErrNotRunning)
	}
	return r.fallback.Stats(ctx, containerID)
}

// Runs reports whether a container has processes that are visible here.
func (r *Reader) Runs(containerID string) bool {
	_, visible := r.find(containerID)
	return visible
}

// find returns the path of a container below a hierarchy.
func (r *Reader) find(id string) (path string, ok bool) {
	if id == "" || filepath.Base(id) != id {
		return "", false
	}
	// Docker uses the first path with the cgroupfs driver, the second with systemd.
	for _, path := range []string{"docker/" + id, "system.slice/docker-" + id + ".scope"} {
		if _, err := os.Stat(r.group("memory", path)); err == nil {
			return path, true
		}
	}
	return "", false
}

// group returns the container's directory in a hierarchy. cgroup v2 has only one.
func (r *Reader) group(controller, path string) string {
	if r.unified {
		return filepath.Join(r.cgroups, path)
	}
	return filepath.Join(r.cgroups, controller, path)
}

// process returns the pid of one of the container's processes. It is not cached,
// because pids are reused. The error is fs.ErrNotExist if none is running.
func (r *Reader) process(path string) (string, error) {
	text, err := os.ReadFile(filepath.Join(r.group("memory", path), "cgroup.procs"))
	if err != nil {
		return "", err
	}
	pid, _, _ := strings.Cut(string(text), "\n")
	if pid == "" || pid == "0" { // none, or one of another pid namespace
		return "", fs.ErrNotExist
	}
	return pid, nil
}

func (r *Reader) read(path string) (runtime.Stats, error) {
	s := runtime.Stats{Read: time.Now()}
	pid, err := r.process(path)
	if err != nil {
		return s, err
	}
	s.NetworkRx, s.NetworkTx, err = network(filepath.Join(r.proc, pid, "net/dev"))
	if err != nil {
		return s, err
	}
	if r.unified {
		err = r.readV2(path, &s)
	} else {
		err = r.readV1(path, &s)
	}
	if s.MemoryLimit <= 0 || (r.memory > 0 && s.MemoryLimit > r.memory) {
		s.MemoryLimit = r.memory
	}
	return s, err
}

// readV1 reads the files of each controller. Block I/O and pids are 0 if their
// controller is missing.
func (r *Reader) readV1(path string, s *runtime.Stats) error {
	memory := r.group("memory", path)
	usage, err := number(filepath.Join(memory, "memory.usage_in_bytes"))
	if err != nil {
		return err
	}
	cache, err := field(filepath.Join(memory, "memory.stat"), "total_inactive_file")
	if err != nil {
		return err
	}
	cpu, err := number(filepath.Join(r.group("cpuacct", path), "cpuacct.usage"))
	if err != nil {
		return err
	}
	s.CPU, s.Memory = time.Duration(cpu), max(usage-cache, 0)
	if s.MemoryLimit, err = number(filepath.Join(memory, "memory.limit_in_bytes")); err != nil {
		return err
	}
	s.Pids, err = optional(number(filepath.Join(r.group("pids", path), "pids.current")))
	if err != nil {
		return err
	}
	s.BlockRead, s.BlockWrite, err = blkio(r.group("blkio", path))
	return err
}

func (r *Reader) readV2(path string, s *runtime.Stats) error {
	group := r.group("", path)
	usage, err := number(filepath.Join(group, "memory.current"))
	if err != nil {
		return err
	}
	cache, err := field(filepath.Join(group, "memory.stat"), "inactive_file")
	if err != nil {
		return err
	}
	cpu, err := field(filepath.Join(group, "cpu.stat"), "usage_usec")
	if err != nil {
		return err
	}
	s.CPU, s.Memory = time.Duration(cpu)*time.Microsecond, max(usage-cache, 0)
	if s.MemoryLimit, err = number(filepath.Join(group, "memory.max")); err != nil {
		return err
	}
	s.Pids, err = optional(number(filepath.Join(group, "pids.current")))
	if err != nil {
		return err
	}
	s.BlockRead, s.BlockWrite, err = iostat(filepath.Join(group, "io.stat"))
	return err
}

// optional returns 0 for a file that does not exist.
func optional(n int64, err error) (int64, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return n, err
}
