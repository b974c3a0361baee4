package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/go-units"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime"
	"berth/runtime/firewall"
	"berth/runtime/volume"
)

// path returns a path of the examined host.
func (e *examination) path(p string) string { return filepath.Join("/", e.Root, p) }

// What the store refuses changes at is at most 256 MiB, and files stop at 512 MiB or a
// tenth of the disk: see hack/docs/operator.md.
const (
	diskFail = 256 << 20 // bytes
	diskWarn = 1 << 30
)

func checkDisk(_ context.Context, e *examination) Result {
	c := e.Config.Config.Storage
	paths := append([]string{c.DataPath}, volumeDirs(e.Config.Config)...)
	if info, err := e.engine(); err == nil && info.Root != "" {
		if _, err := os.Stat(e.path(info.Root)); err == nil { // another mount namespace has another
			paths = append(paths, info.Root)
		}
	}
	worst, found, seen, readOnly := OK, []string{}, map[uint64]bool{}, false
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
		readOnly = readOnly || st.Flags&unix.ST_RDONLY != 0
		if status == Fail || worst == OK {
			worst = status
		}
	}
	found = append(found, hardLimits(c, e.path(c.VolumesPath)))
	r := Result{Status: worst, Message: strings.Join(found, "; ")}
	switch {
	case readOnly:
		r.Remedy = "look for errors of the disk (dmesg), check it (fsck), and mount it writable again"
	case worst != OK:
		r.Remedy = "remove files, containers with their volumes, or unused images (docker image prune -a), or enlarge the disk"
	}
	return r
}

// volumeDirs returns the directories that hold volumes.
func volumeDirs(c v1.Config) []string {
	dirs := []string{c.Storage.VolumesPath}
	for _, name := range slices.Sorted(maps.Keys(c.Kubernetes.Claims)) {
		dirs = append(dirs, c.VolumesIn(name))
	}
	return dirs
}

// hardLimits describes how the limits of volumes are enforced.
func hardLimits(c v1.StorageConfig, volumes string) string {
	if c.HardLimit != v1.HardLimitAuto {
		return "limits of volumes are soft: storage.hard_limit is off"
	}
	if err := volume.CheckHardLimits(existing(volumes)); err != nil {
		return "limits of volumes are soft: " + err.Error()
	}
	return "limits of new volumes are hard"
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

func checkKernel(_ context.Context, e *examination) Result {
	if err := errors.Join(runtime.KernelResources(e.path("/proc")), runtime.Inotify()); err != nil {
		return warning(strings.ReplaceAll(err.Error(), "\n", "; "),
			"ls -l /proc/*/fd lists the open handles of each process: /dev/ptmx is a terminal, anon_inode:inotify an inotify instance")
	}
	return ok("has enough of what all containers share: terminals, asynchronous I/O, open files, inotify instances")
}

// The versions of Docker that berth works with, and the newest that it is tested with.
const (
	oldestEngine = "20.10"
	newestEngine = "28.5"
	soundEngine  = "23.0" // the first without a known fault that berth cannot hide completely
)

// noEngine returns the result of a check that needs the engine. The check engine fails
// for all of them.
func noEngine() Result { return warning("unknown: the engine does not answer", "see the check engine") }

func checkEngine(_ context.Context, e *examination) Result {
	info, err := e.engine()
	if e.kubernetes() {
		return judgeCluster(volumeDirs(e.Config.Config), info, err)
	}
	if err != nil {
		return failed(err.Error(), "start Docker (systemctl start docker), read its log (journalctl -u docker), or correct docker.host; "+
			"this user must be root or in the group docker")
	}
	return judgeVersion(info)
}

// newestCluster and oldestCluster are the versions of Kubernetes that berth works with.
const (
	oldestCluster = "1.35" // the first that resizes a running pod
	newestCluster = "1.37"
)

// maxNodes is how many nodes a result names.
const maxNodes = 10

// judgeCluster judges a cluster, and whether the directories of volumes are mounts of claims: a directory of a
// container is gone with it.
func judgeCluster(volumes []string, info runtime.EngineInfo, err error) Result {
	if err != nil {
		return failed(err.Error(),
			"let berth's pod reach the cluster's API server, or correct kubernetes.kubeconfig, or the permissions of berth's service account "+
				"(hack/deploy/kubernetes/role.yaml)")
	}
	var silent []string
	for _, m := range info.Machines {
		if !m.Ready {
			silent = append(silent, m.Name)
		}
	}
	bare := slices.DeleteFunc(slices.Clone(volumes), isMount)
	found := fmt.Sprintf("Kubernetes %s with %d processors, on %s, Linux %s", info.Version, info.CPUs, info.OS, info.Kernel)
	switch {
	case compare(info.Version, oldestCluster) < 0:
		return failed(found+": older than "+oldestCluster, "upgrade the cluster")
	case len(info.Denied) > 0:
		return failed(found+": berth's account may not "+strings.Join(info.Denied, "; "), "apply hack/deploy/kubernetes/role.yaml again")
	case len(bare) > 0:
		return warning(found+": "+strings.Join(bare, ", ")+" is not a mount",
			"mount kubernetes.claim at storage.volumes_path of berth's pod, and each of kubernetes.claims at claims/<name> of storage.data_path")
	case len(info.Foreign) > 0:
		return warning(found+": pods of another berth are in the namespace: "+strings.Join(info.Foreign, ", "),
			"give each berth a namespace of its own: they take each other's ports and quota; if that berth and its store are gone, "+
				"delete its pods, and their finalizer berth.io/observed")
	case len(silent) > 0:
		return warning(found+fmt.Sprintf(": %d nodes are not ready: ", len(silent))+strings.Join(silent[:min(len(silent), maxNodes)], ", "),
			"see kubectl describe node; berth starts the servers of a node that is off elsewhere once it has the taint out-of-service, or its "+
				"object is deleted")
	case info.StatsError != "":
		return warning(found+": no statistics of servers: "+info.StatsError,
			"set kubernetes.kubelet_ca, or have the cluster's authority sign the certificates of the kubelets (serverTLSBootstrap)")
	case compare(info.Version, newestCluster+".999") > 0:
		return warning(found+": newer than "+newestCluster+", the newest that berth is tested with",
			"report what does not work, with the output of berth doctor -o json")
	}
	return ok(found)
}

// isMount reports whether a directory is the root of a mount, which may be of its parent's own
// file system. A kernel before 5.8 does not say.
func isMount(path string) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, 0, 0, &st)
	return err == nil && (st.Attributes|^st.Attributes_mask)&unix.STATX_ATTR_MOUNT_ROOT != 0
}

func judgeVersion(info runtime.EngineInfo) Result {
	found := fmt.Sprintf("Docker %s, API %s, on %s, Linux %s", info.Version, info.API, info.OS, info.Kernel)
	switch {
	case compare(info.Version, oldestEngine) < 0:
		return failed(found+": older than "+oldestEngine, "install Docker "+oldestEngine+" or newer; "+soundEngine+" or newer is better")
	case compare(info.Version, newestEngine+".999") > 0:
		return warning(found+": newer than "+newestEngine+", the newest that berth is tested with",
			"report what does not work, with the output of berth doctor -o json")
	case compare(info.Version, soundEngine) < 0:
		return warning(found+": repeats a rotated log file to the console's reader (berth drops the repeated lines), and leaves out the "+
			"rest of a log file that a burst of more than docker.log_max_size outruns. A UDP client that keeps sending while its container "+
			"restarts may reach it only after it was silent for half a minute", "install Docker "+soundEngine+" or newer")
	}
	return ok(found)
}

func checkLimits(_ context.Context, e *examination) Result {
	info, err := e.engine()
	if err != nil {
		return noEngine()
	}
	if e.kubernetes() {
		return ok("memory and cpu are limited by each node; requests for other limits are refused; set podPidsLimit of the kubelets")
	}
	return judgeLimits(info.Limits)
}

func judgeLimits(l runtime.EngineLimits) Result {
	var none []string
	for _, limit := range []struct {
		name     string
		enforced bool
	}{{"memory", l.Memory}, {"cpu", l.CPU}, {"processes", l.Pids}} {
		if !limit.enforced {
			none = append(none, limit.name)
		}
	}
	switch {
	case len(none) > 0:
		return failed("the kernel does not limit "+strings.Join(none, ", ")+": one container can stop the host",
			"boot with cgroup_enable=memory, or use a kernel of the distribution")
	case !l.Swap:
		return warning("the kernel does not limit swap: a container may swap beyond limits.memory", "boot with swapaccount=1, or switch swap off")
	}
	return ok("memory, swap, cpu and processes are limited")
}

// compare compares the numbers of two versions as 20.10.24+dfsg1. It returns a negative
// number if a is older than b, and a positive one if it is newer.
func compare(a, b string) int { return slices.Compare(numbers(a), numbers(b)) }

func numbers(version string) (list []int) {
	for part := range strings.SplitSeq(version, ".") {
		end := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' })
		if end < 0 {
			end = len(part)
		}
		n, err := strconv.Atoi(part[:end])
		if err != nil {
			return list
		}
		list = append(list, n)
	}
	return list
}
