package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"berth/runtime"
)

// The versions of Docker that berth works with, and the newest that it is tested with.
const (
	oldestEngine = "20.10"
	newestEngine = "28.5"
)

// noEngine returns the result of a check that needs the engine. The check engine fails
// for all of them.
func noEngine() Result { return warning("unknown: the engine does not answer", "see the check engine") }

func checkEngine(_ context.Context, e *examination) Result {
	info, err := e.engine()
	if err != nil {
		return failed(err.Error(), "start Docker (systemctl start docker), read its log (journalctl -u docker), or correct docker.host; "+
			"this user must be root or in the group docker")
	}
	return judgeVersion(info)
}

func judgeVersion(info runtime.EngineInfo) Result {
	found := fmt.Sprintf("Docker %s, API %s, on %s, Linux %s", info.Version, info.API, info.OS, info.Kernel)
	switch {
	case compare(info.Version, oldestEngine) < 0:
		return failed(found+": older than "+oldestEngine, "install Docker "+oldestEngine+" or newer; 23 or newer is better")
	case compare(info.Version, newestEngine+".999") > 0:
		return warning(found+": newer than "+newestEngine+", the newest that berth is tested with", "report what does not work, with a bundle")
	}
	return ok(found)
}

// defect is a fault of Docker that berth cannot hide completely.
type defect struct {
	before string // the first version without it
	effect string
}

// defects returns the known faults of Docker, which hack/docs/operation.md describes.
func defects() []defect {
	return []defect{
		{"23.0", "repeats a rotated log file to the console's reader (berth drops the repeated lines), and leaves out the rest of a log file " +
			"that a burst of more than docker.log_max_size outruns"},
	}
}

func checkDefects(_ context.Context, e *examination) Result {
	info, err := e.engine()
	if err != nil {
		return noEngine()
	}
	return judgeDefects(info.Version)
}

func judgeDefects(version string) Result {
	var found []string
	fixed := ""
	for _, d := range defects() {
		if compare(version, d.before) < 0 {
			found = append(found, d.effect)
			fixed = d.before
		}
	}
	if len(found) == 0 {
		return ok("none known of Docker " + version)
	}
	return warning("Docker "+version+" "+strings.Join(found, "; "), "install Docker "+fixed+" or newer")
}

func checkLiveRestore(_ context.Context, e *examination) Result {
	info, err := e.engine()
	switch {
	case err != nil:
		return noEngine()
	case !info.LiveRestore:
		return warning("off: containers stop when Docker restarts, and berth starts them again",
			`set "live-restore": true in /etc/docker/daemon.json, then systemctl reload docker`)
	}
	return ok("on: containers run on while Docker restarts")
}

// slowDrivers are storage drivers that work, and that no host should use.
var slowDrivers = []string{"vfs", "aufs", "devicemapper", "overlay"}

func checkStorageDriver(_ context.Context, e *examination) Result {
	info, err := e.engine()
	switch {
	case err != nil:
		return noEngine()
	case slices.Contains(slowDrivers, info.StorageDriver):
		return warning(info.StorageDriver+": copies whole images, or is no longer part of Docker",
			`set "storage-driver": "overlay2" in /etc/docker/daemon.json on ext4 or xfs; images must be pulled again`)
	}
	return ok(info.StorageDriver)
}

func checkCgroup(_ context.Context, e *examination) Result {
	info, err := e.engine()
	if err != nil {
		return noEngine()
	}
	found := fmt.Sprintf("version %s, driver %s", info.CgroupVersion, info.CgroupDriver)
	if info.CgroupVersion == "1" {
		return warning(found+": Docker and systemd end their support of version 1",
			"boot with systemd.unified_cgroup_hierarchy=1, or upgrade the distribution")
	}
	return ok(found)
}

func checkLimits(_ context.Context, e *examination) Result {
	info, err := e.engine()
	if err != nil {
		return noEngine()
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
