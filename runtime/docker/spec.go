package docker

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-connections/nat"

	"berth/runtime"
	"berth/runtime/keeper"
)

// capabilities are those that root has inside a container. Images of game servers
// and their install scripts unpack archives as root, give files to another user
// and switch to that user (CHOWN, DAC_OVERRIDE, FOWNER, SETUID, SETGID: apt, su,
// gosu), signal processes of that user (KILL), and listen below port 1024
// (NET_BIND_SERVICE). An installer has those of package managers too: they run
// scripts in their root (SYS_CHROOT: apk), unpack set-id files and files with
// capabilities (FSETID, SETFCAP), and create users (AUDIT_WRITE). No server needs
// those, and set-id bits have no effect in one. Docker's default list has more:
// NET_RAW (spoofing on the bridge), MKNOD (devices) and SETPCAP.
var (
	capabilities          = []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"}
	installerCapabilities = append(slices.Clone(capabilities), "AUDIT_WRITE", "FSETID", "SETFCAP", "SYS_CHROOT")
)

func capabilitiesOf(r runtime.Role) []string {
	if r == runtime.Install {
		return installerCapabilities
	}
	return capabilities
}

// ulimits returns the ulimits of every container. Without them a container has
// the engine's limits, which may be unlimited: programs that close or count all
// file descriptors then take minutes, and one container can use up the host's
// descriptors. The pids limit bounds processes, because nproc counts those of all
// containers with the same user. Core dumps are off, as one could fill the volume.
func ulimits(c Config) []*container.Ulimit {
	list := []*container.Ulimit{{Name: "core", Soft: 0, Hard: 0}}
	if c.NofileLimit > 0 {
		list = append(list, &container.Ulimit{Name: "nofile", Soft: c.NofileLimit, Hard: c.NofileLimit})
	}
	return list
}

// build returns Docker's configuration of a container whose Command is complete. It alone
// decides what a container may do, in the same way for all of a role. It is a pure function.
func build(c Config, s runtime.Spec) (*container.Config, *container.HostConfig) {
	exposed, bindings := publish(s.Ports)
	// Docker's DNS resolves Hostname for all containers of the network, and does so
	// before it asks the host's resolver. A whole name could replace one of the Internet.
	hostname, domain, _ := strings.Cut(s.Hostname, ".")
	config := &container.Config{
		Hostname:     hostname,
		Domainname:   domain,
		Image:        s.Image,
		Entrypoint:   keeper.Command(s, ""), // replaces the image's entrypoint and command
		Env:          s.Env,
		User:         s.User,
		WorkingDir:   s.Workdir,
		Tty:          s.TTY,
		OpenStdin:    s.Name.Role == runtime.Server, // for the console; it stays open when a writer disconnects
		StopSignal:   s.StopSignal,
		StopTimeout:  stopTimeout(s.StopTimeout),
		ExposedPorts: exposed,
		Labels:       labels(c.StoreID, s),
		// An image's own check would run outside of the limits of the container's processes.
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
	}
	init := false // the keeper does what the engine's init would, and more
	host := &container.HostConfig{
		NetworkMode:   container.NetworkMode(c.Network),
		PortBindings:  bindings,
		Mounts:        binds(append(slices.Clone(s.Mounts), keeperOf(c))),
		CapDrop:       []string{"ALL"},
		CapAdd:        capabilitiesOf(s.Name.Role),
		SecurityOpt:   securityOptions(c),
		Privileged:    false,
		IpcMode:       container.IPCModePrivate,
		CgroupnsMode:  container.CgroupnsModePrivate,
		Init:          &init,
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
		LogConfig: container.LogConfig{Type: "json-file", Config: map[string]string{
			"max-size": strconv.FormatInt(c.LogMaxSize, 10),
			"max-file": strconv.Itoa(c.LogMaxFiles),
		}},
		Resources: resources(s.Live),
	}
	host.NanoCPUs = atMost(host.NanoCPUs, c.cpus)
	if host.PidsLimit == nil {
		host.PidsLimit = pidsLimit(c.PidsLimit)
	}
	host.BlkioWeight, host.Ulimits, host.ShmSize = s.IOWeight, ulimits(c), s.ShmSize
	if s.ReadOnlyRoot {
		host.ReadonlyRootfs, host.Tmpfs = true, tmpfs(c.TmpSize, s.Mounts)
	}
	return config, host
}

func keeperOf(c Config) runtime.Mount {
	return runtime.Mount{Source: filepath.Join(c.Volumes, c.keeper), Target: keeper.Dir, ReadOnly: true}
}

// securityOptions returns the options that confine the processes of a container.
func securityOptions(c Config) []string {
	options := []string{"no-new-privileges"}
	if c.profile != "" {
		options = append(options, "seccomp="+c.profile)
	}
	return options
}

// tmpfs returns the file systems in memory of a container with a read-only root. Programs
// extract libraries to /tmp and load them, so that files there can be executed, as they can
// without a read-only root. Files without content take memory too: their number is bounded.
func tmpfs(size int64, mounts []runtime.Mount) map[string]string {
	all := map[string]string{}
	for _, dir := range []string{"/tmp", "/run"} {
		if !slices.ContainsFunc(mounts, func(m runtime.Mount) bool { return m.Target == dir }) {
			all[dir] = fmt.Sprintf("rw,exec,nosuid,nodev,mode=1777,size=%d,nr_inodes=%d", size, size/bytesPerInode)
		}
	}
	return all
}

// bytesPerInode is the size of a file system in memory for which it may hold one file.
const bytesPerInode = 4096

// stopTimeout returns a timeout in whole seconds, rounded up; nil for 0.
func stopTimeout(d time.Duration) *int {
	if d <= 0 {
		return nil
	}
	seconds := int(math.Ceil(d.Seconds()))
	return &seconds
}

// resources returns the limits in Docker's form. The engine reads 0 as "no limit"
// in a create and as "unchanged" in an update. Docker's MemorySwap includes the
// memory, runtime.Live.Swap does not.
func resources(l runtime.Live) container.Resources {
	r := container.Resources{NanoCPUs: int64(math.Round(l.CPU * 1e9)), CpusetCpus: l.Cpuset, Memory: l.Memory}
	if l.Memory > 0 {
		r.MemorySwap = l.Memory + l.Swap
	}
	if l.Memory > 0 && l.Swap < 0 {
		r.MemorySwap = -1
	}
	if l.NoOOMKill {
		r.OomKillDisable = &l.NoOOMKill
	}
	if l.Pids > 0 {
		r.PidsLimit = pidsLimit(l.Pids)
	}
	return r
}

// pidsLimit returns the engine's limit for a container that may have so many processes and threads of its own.
func pidsLimit(own int64) *int64 {
	all := min(own, math.MaxInt64-keeper.Pids) + keeper.Pids
	return &all
}

// atMost returns a limit in billionths of a processor, or that of all processors of the
// host if it is above: the engine refuses such a limit, which a spec has that was stored
// before the host lost processors. 0 processors are an unknown number.
func atMost(nano int64, cpus int) int64 {
	if cpus > 0 {
		return min(nano, int64(cpus)*1e9)
	}
	return nano
}

// binds returns bind mounts. It does not use Docker's older Binds: for a missing
// source these create an empty directory, and a server would start without its
// files.
func binds(mounts []runtime.Mount) []mount.Mount {
	var all []mount.Mount
	for _, m := range mounts {
		all = append(all, mount.Mount{
			Type:        mount.TypeBind,
			Source:      m.Source,
			Target:      m.Target,
			ReadOnly:    m.ReadOnly,
			BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate},
		})
	}
	return all
}

func publish(ports []runtime.Port) (nat.PortSet, nat.PortMap) {
	exposed, bindings := nat.PortSet{}, nat.PortMap{}
	for _, p := range ports {
		port := nat.Port(strconv.Itoa(p.ContainerPort) + "/" + p.Protocol)
		exposed[port] = struct{}{}
		bindings[port] = append(bindings[port], nat.PortBinding{HostIP: p.IP, HostPort: strconv.Itoa(p.Port)})
	}
	return exposed, bindings
}
