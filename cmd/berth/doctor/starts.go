package doctor

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/cmd/berth/config"
	"berth/runtime/firewall"
)

// checkStarts checks what each container needs to start, beside the engine.
func checkStarts(ctx context.Context, e *examination) Result {
	if r := e.reportedStarts(ctx); r.Status != OK {
		return r
	}
	path, err := config.Keeper(e.Config.Config.Kubernetes.Keeper)
	if err != nil {
		return failed(err.Error(), "install berth-keeper, which is the first process of every container, of the same release")
	}
	if r := judgeKeeper(path); r.Status != OK || e.kubernetes() {
		return r
	}
	info, err := e.engine()
	switch {
	case err != nil:
		return noEngine()
	case info.MapsUsers:
		return failed("the engine maps the users of containers to others (userns-remap), who cannot use the volumes",
			"remove userns-remap from the engine's configuration, and restart it")
	}
	if r := judgeExecution(e.path(e.Config.Config.Storage.VolumesPath)); r.Status != OK || info.Firewall != "iptables" {
		return r
	}
	return judgeChains(firewall.HasChain(ctx, "nat", "DOCKER"))
}

// reportedStarts judges the node's condition ContainersStart, which the daemon has observed.
func (e *examination) reportedStarts(ctx context.Context) Result {
	if !e.daemon().answers {
		return ok("")
	}
	node, err := e.Daemon.Node(ctx)
	if err != nil {
		return ok("") // see the check daemon
	}
	if c := v1.FindCondition(node.Conditions, v1.ContainersStart); c.Status == v1.False {
		return failed(fmt.Sprintf("%s (at the last start, since %s)", c.Message, c.Since.Format("2006-01-02 15:04:05")),
			"repair the host, and start a container; the other checks, and journalctl -u docker, may name the cause")
	}
	return ok("")
}

// judgeKeeper judges the program at path: it has to be berth-keeper, of the build of this program.
func judgeKeeper(path string) Result {
	const remedy = "install berth and berth-keeper of the same release"
	found, err := buildinfo.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return warning(err.Error(), "run berth doctor as root, or as the user of the daemon")
	case err != nil || found.Path != "berth/cmd/keeper":
		return failed(path+" is another program than berth-keeper", remedy)
	}
	own, known := debug.ReadBuildInfo()
	if known && revision(own) != revision(found) && revision(own) != "" && revision(found) != "" {
		return warning(fmt.Sprintf("%s was built of revision %.12s, and this program of %.12s", path, revision(found), revision(own)), remedy)
	}
	return ok(path + " is the first process of containers")
}

// revision returns the revision that a program was built of; empty if it is unknown.
func revision(info *debug.BuildInfo) string {
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

// judgeExecution judges whether the programs of volumes can be executed.
func judgeExecution(volumes string) Result {
	var st unix.Statfs_t
	if unix.Statfs(existing(volumes), &st) == nil && st.Flags&unix.ST_NOEXEC != 0 {
		return warning(volumes+" is on a file system that is mounted with noexec: no program in a volume can be executed, "+
			"and engines newer than 20.10 start no container",
			"mount it with exec")
	}
	return ok("berth-keeper is there, and programs of volumes can be executed")
}

func judgeChains(exists bool, err error) Result {
	switch {
	case err != nil: // see the check firewall
		return ok("berth-keeper is there, and programs of volumes can be executed; the chains of iptables are unknown")
	case !exists:
		return failed("the chains of Docker are missing in iptables: no container with a port starts",
			"restart Docker (systemctl restart docker), after whatever has flushed them, such as a firewall that was reloaded")
	}
	return ok("berth-keeper, the chains of iptables, and programs of volumes can be used")
}
