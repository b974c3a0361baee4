package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/docker/go-units"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/firewall"
)

// path returns a path of the examined host.
func (e *examination) path(p string) string { return filepath.Join("/", e.Root, p) }

// number reads the numbers of a file of /proc.
func (e *examination) number(file string) ([]uint64, error) {
	text, err := os.ReadFile(e.path(file))
	if err != nil {
		return nil, err
	}
	var list []uint64
	for field := range strings.FieldsSeq(string(text)) {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		list = append(list, n)
	}
	return list, nil
}

// What the store refuses changes at is at most 256 MiB, and files stop at 512 MiB or a
// tenth of the disk: see hack/docs/operation.md.
const (
	diskFail = 256 << 20 // bytes
	diskWarn = 1 << 30
)

func checkDisk(_ context.Context, e *examination) Result {
	c := e.Config.Config.Storage
	paths := []string{c.DataPath, c.VolumesPath}
	if info, err := e.engine(); err == nil && info.Root != "" {
		if _, err := os.Stat(e.path(info.Root)); err == nil { // another mount namespace has another
			paths = append(paths, info.Root)
		}
	}
	worst, found, seen := OK, []string{}, map[uint64]bool{}
	for _, path := range paths {
		device, st, err := diskOf(existing(e.path(path)))
		if err != nil {
			return failed(path+": "+err.Error(), "mount the disk of "+path)
		}
		if path == "" || seen[device] {
			continue
		}
		seen[device] = true
		text, status := judgeDisk(path, st)
		found = append(found, text)
		if status == Fail || worst == OK {
			worst = status
		}
	}
	r := Result{Status: worst, Message: strings.Join(found, "; ")}
	if worst != OK {
		r.Remedy = "remove files, containers with their volumes, or unused images (docker image prune -a), or enlarge the disk"
	}
	return r
}

// diskOf returns the device and the space of the file system at path.
func diskOf(path string) (device uint64, st unix.Statfs_t, err error) {
	var file unix.Stat_t
	if err := unix.Stat(path, &file); err != nil {
		return 0, st, err
	}
	return file.Dev, st, unix.Statfs(path, &st)
}

// existing returns the nearest parent of path that exists.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || path == "/" {
			return path
		}
		path = filepath.Dir(path)
	}
}

func judgeDisk(path string, st unix.Statfs_t) (string, Status) {
	free, size := st.Bavail*uint64(st.Bsize), st.Blocks*uint64(st.Bsize)
	text := fmt.Sprintf("the disk of %s has %s of %s free", path, units.BytesSize(float64(free)), units.BytesSize(float64(size)))
	files := st.Files == 0 // a file system without a fixed number of inodes
	if !files {
		text += fmt.Sprintf(", and %d%% of its inodes", st.Ffree*100/st.Files)
	}
	switch {
	case st.Flags&unix.ST_RDONLY != 0:
		return path + " is mounted read-only", Fail
	case free < diskFail, !files && st.Ffree*100 < st.Files:
		return text, Fail
	case free < diskWarn, free < size/10, !files && st.Ffree*10 < st.Files:
		return text, Warn
	}
	return text, OK
}

// spareInstances are the inotify instances that programs other than Docker's readers
// of logs may need.
const spareInstances = 64

func checkInotify(_ context.Context, e *examination) Result {
	instances, err := e.number("/proc/sys/fs/inotify/max_user_instances")
	if err != nil {
		return warning(err.Error(), "mount /proc")
	}
	watches, err := e.number("/proc/sys/fs/inotify/max_user_watches")
	if err != nil {
		return warning(err.Error(), "mount /proc")
	}
	info, _ := e.engine() // without it no container is counted
	return judgeInotify(instances[0], watches[0], uint64(info.Containers))
}

func judgeInotify(instances, watches, containers uint64) Result {
	found := fmt.Sprintf("%d instances and %d watches of one user; %d containers", instances, watches, containers)
	const remedy = "set fs.inotify.max_user_instances=1024 and fs.inotify.max_user_watches=524288 in /etc/sysctl.d/berth.conf, then run sysctl --system"
	if instances < containers+spareInstances {
		return warning(found+": Docker needs one instance for each console that it reads, else it polls the log", remedy)
	}
	if watches < 8192 {
		return warning(found+": programs in containers share these watches", remedy)
	}
	return ok(found)
}

// leastFiles is the number of files below which a daemon admits few connections: it uses
// a third of them for connections.
const leastFiles = 16384

func checkFiles(_ context.Context, e *examination) Result {
	system, err := e.number("/proc/sys/fs/file-nr")
	if err != nil || len(system) < 3 {
		return warning(fmt.Sprintf("cannot read /proc/sys/fs/file-nr: %v", err), "mount /proc")
	}
	if system[0] > system[2]/10*8 {
		return failed(fmt.Sprintf("%d of the host's %d files are open", system[0], system[2]), "raise fs.file-max, and look for the process that opens them (lsof)")
	}
	state := e.daemon()
	limit, isDaemons := state.value("process_max_fds")
	if !isDaemons {
		var own unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
			return warning(err.Error(), "run berth doctor on Linux")
		}
		limit = float64(own.Max) // berth raises its soft limit to it
	}
	open, _ := state.value("process_open_fds")
	return judgeFiles(uint64(limit), uint64(open), isDaemons)
}

func judgeFiles(limit, open uint64, isDaemons bool) Result {
	const remedy = "set LimitNOFILE=65536 in berth's unit, or ulimit -n 65536 before berth serve"
	switch {
	case !isDaemons && limit < leastFiles:
		return warning(fmt.Sprintf("a berth started from this shell may open %d files", limit), remedy)
	case !isDaemons:
		return ok(fmt.Sprintf("a berth started from this shell may open %d files", limit))
	case open > limit/10*9:
		return failed(fmt.Sprintf("the daemon has %d of %d files open", open, limit), remedy)
	case limit < leastFiles:
		return warning(fmt.Sprintf("the daemon may open %d files, and has %d open", limit, open), remedy)
	}
	return ok(fmt.Sprintf("the daemon has %d of %d files open", open, limit))
}

func checkFirewall(ctx context.Context, e *examination) Result {
	c := e.Config.Config.Firewall
	if c.Backend == v1.BackendNone {
		return ok("firewall.backend is none: berth changes no rules")
	}
	version, err := firewall.Probe(ctx)
	switch {
	case err != nil && c.Backend == v1.BackendIPTables:
		return failed(err.Error(), "install iptables, run berth as root, or set firewall.backend to none")
	case err != nil:
		return warning(err.Error()+": the pool's ports are not opened, and containers reach the provider's metadata and berth",
			"install iptables, and run berth and this check as root")
	}
	return ok(version)
}

func checkFirewalld(_ context.Context, e *examination) Result {
	names, err := filepath.Glob(e.path("/proc/[0-9]*/comm"))
	if err != nil {
		return warning(err.Error(), "mount /proc")
	}
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil && strings.TrimSpace(string(text)) == "firewalld" {
			return warning("runs: its rules drop what berth's chain admits",
				"open the ports with firewall-cmd --permanent --add-port=<port>/<protocol>, then firewall-cmd --reload; published ports of Docker are open")
		}
	}
	return ok("does not run")
}

// clockError is TIME_ERROR of adjtimex(2).
const clockError = 5

func checkClock(_ context.Context, e *examination) Result {
	var t unix.Timex // no mode: it is only read
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return warning("cannot ask the kernel: "+err.Error(), "run berth doctor outside of a sandbox")
	}
	return judgeClock(state == clockError || t.Status&unix.STA_UNSYNC != 0)
}

func judgeClock(unsynchronised bool) Result {
	if unsynchronised {
		return warning("is not synchronised: tokens may expire early or late, and times of events are wrong",
			"install systemd-timesyncd or chrony; a virtual machine whose host keeps the time may ignore this")
	}
	return ok("is synchronised")
}
