package docker

import (
	"math"
	"strconv"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-connections/nat"

	"berth/runtime"
)

// capabilities are what root inside a container keeps. Images of game servers
// and their install scripts unpack archives as root, hand files to a user of
// their own and become that user (CHOWN, DAC_OVERRIDE, FOWNER, SETUID, SETGID:
// apt, su, gosu), end processes of that user (KILL), and listen below 1024
// (NET_BIND_SERVICE). Left out of Docker's default list: NET_RAW (spoofing on
// the bridge), MKNOD (devices), SYS_CHROOT, SETPCAP, SETFCAP and AUDIT_WRITE
// (no server needs them), FSETID (set-id bits have no effect here anyway).
var capabilities = []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"}

// ulimits are those of every container. Without them a container has the
// engine's, which are the host's or none: programs that close or count all
// handles take minutes then, and one container can take every handle of the host.
// Processes are bounded by the pids limit, since nproc counts those of all
// containers with the same user. A core dump would fill the volume.
func ulimits(c Config) []*container.Ulimit {
	list := []*container.Ulimit{{Name: "core", Soft: 0, Hard: 0}}
	if c.NofileLimit > 0 {
		list = append(list, &container.Ulimit{Name: "nofile", Soft: c.NofileLimit, Hard: c.NofileLimit})
	}
	return list
}

// build is the one place that says what a container may do. It is the same
// for both roles, and a pure function of its arguments.
func build(c Config, s runtime.Spec) (*container.Config, *container.HostConfig) {
	exposed, bindings := publish(s.Ports)
	config := &container.Config{
		Image:        s.Image,
		Entrypoint:   s.Command, // nil keeps the image's own; else nothing of the image's is run
		Env:          s.Env,
		User:         s.User,
		WorkingDir:   s.Workdir,
		Tty:          s.TTY,
		OpenStdin:    true, // for the console; it stays open when a writer leaves
		StopSignal:   s.StopSignal,
		StopTimeout:  stopTimeout(s.StopTimeout),
		ExposedPorts: exposed,
		Labels:       labels(c.StoreID, s),
	}
	init := true // reaps what servers leave behind, and gives them a signal's default effect
	host := &container.HostConfig{
		NetworkMode:   container.NetworkMode(c.Network),
		PortBindings:  bindings,
		Mounts:        binds(s.Mounts),
		CapDrop:       []string{"ALL"},
		CapAdd:        capabilities,
		SecurityOpt:   []string{"no-new-privileges"},
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
	if host.PidsLimit == nil {
		host.PidsLimit = &c.PidsLimit
	}
	host.BlkioWeight, host.Ulimits = s.IOWeight, ulimits(c)
	return config, host
}

// stopTimeout returns the whole seconds of a timeout, rounded up; nil for none.
func stopTimeout(d time.Duration) *int {
	if d <= 0 {
		return nil
	}
	seconds := int(math.Ceil(d.Seconds()))
	return &seconds
}

// resources are the limits. The engine reads 0 as none in a new container, and
// as unchanged in one that exists. Swap is beside memory here and on top of it there.
func resources(l runtime.Live) container.Resources {
	r := container.Resources{NanoCPUs: int64(math.Round(l.CPU * 1e9)), CpusetCpus: l.Cpuset, Memory: l.Memory}
	if l.Memory > 0 {
		r.MemorySwap = l.Memory + l.Swap
	}
	if l.Pids > 0 {
		r.PidsLimit = &l.Pids
	}
	return r
}

// binds uses mounts, never the older binds: those make an empty directory
// where the source is missing, and a server would start without its world.
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
