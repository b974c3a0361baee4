package container

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-shellwords"

	v1 "berth/api/v1"
	"berth/runtime"
)

// The defaults and limits of fields that a spec leaves empty.
const (
	defaultStopTimeout = 30 * time.Second
	defaultStopSignal  = "SIGTERM"
	pressureGrace      = 2 * time.Minute  // to free disk space before a run is stopped
	rootStopLimit      = 30 * time.Second // of a stop because of files outside the volume
)

// assignment matches a word that sets a variable for the command after it.
var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

func stopTimeout(s v1.ContainerSpec) time.Duration {
	if s.Stop.Timeout > 0 {
		return time.Duration(s.Stop.Timeout)
	}
	return defaultStopTimeout
}

func stopSignal(s v1.ContainerSpec) string {
	if s.Stop.Signal != "" {
		return s.Stop.Signal
	}
	return defaultStopSignal
}

func serverName(id string) runtime.Name    { return runtime.Name{ID: id, Role: runtime.Server} }
func installerName(id string) runtime.Name { return runtime.Name{ID: id, Role: runtime.Install} }

// commonSpec returns the fields that the containers of both roles share.
func commonSpec(c v1.Container, volume string) runtime.Spec {
	s := c.Spec
	return runtime.Spec{
		Revision: c.Meta.Revision,
		Env:      environment(s),
		Mounts:   []runtime.Mount{{Source: volume, Target: v1.Home}},
		Live:     limits(s),
		IOWeight: s.Limits.IOWeight,
		User:     s.User,
		Workdir:  v1.Home,
	}
}

func serverSpec(c v1.Container, volume string) runtime.Spec {
	spec, s := commonSpec(c, volume), v1.WithDefaults(c.Spec)
	spec.Name, spec.SpecHash = serverName(c.Meta.ID), s.SpecHash()
	spec.Image, spec.Command = s.Image, command(s.StartupCommand)
	spec.TTY, spec.Labels, spec.StopSignal, spec.Hostname = *s.TTY, s.Labels, s.Stop.Signal, s.Hostname
	if s.Workdir != "" {
		spec.Workdir = s.Workdir
	}
	spec.StopTimeout, spec.ReadOnlyRoot = stopTimeout(s), *s.ReadOnlyRoot
	for _, p := range s.Ports {
		if p.ContainerPort == 0 {
			p.ContainerPort = p.Port
		}
		spec.Ports = append(spec.Ports, runtime.Port{IP: p.IP, Port: p.Port, ContainerPort: p.ContainerPort, Protocol: p.Protocol})
	}
	return spec
}

func installerSpec(c v1.Container, volume string) runtime.Spec {
	spec, s := commonSpec(c, volume), c.Spec
	spec.Name, spec.SpecHash = installerName(c.Meta.ID), s.InstallHash()
	shell := cmp.Or(s.InstallEntrypoint, "/bin/sh") // the script's own #! line is a comment to it
	spec.Image, spec.Command = installImage(s), []string{shell, "-c", strings.ReplaceAll(s.Script(), "\r\n", "\n")}
	spec.Workdir = cmp.Or(s.InstallMount, v1.Home)
	spec.Mounts[0].Target = spec.Workdir
	return spec
}

func installImage(s v1.ContainerSpec) string {
	if s.InstallImage != "" {
		return s.InstallImage
	}
	return s.Image
}

// command splits a command line as a shell does. A line that needs a shell, with
// operators, variables, a builtin or an assignment, is passed to /bin/sh. An empty
// line is the image's own command.
func command(line string) []string {
	if strings.TrimSpace(line) == "" {
		return nil
	}
	words, err := shellwords.Parse(line)
	if err != nil || len(words) == 0 || strings.ContainsAny(line, "|&;<>()$`\n*?[") || words[0] == "exec" || assignment.MatchString(words[0]) {
		return []string{"/bin/sh", "-c", line}
	}
	return words
}

// environment returns the variables of a container. The time zone is one of them,
// unless the client sets TZ itself.
func environment(s v1.ContainerSpec) []string {
	list := make([]string, 0, len(s.Env)+1)
	for k, v := range s.Env {
		list = append(list, k+"="+v)
	}
	if _, set := s.Env["TZ"]; s.Timezone != "" && !set {
		list = append(list, "TZ="+s.Timezone)
	}
	slices.Sort(list)
	return list
}

// mounts returns the requested mounts, with the paths that the client sent.
func mounts(s v1.ContainerSpec) (list []runtime.Mount) {
	for _, m := range s.Mounts {
		list = append(list, runtime.Mount{Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly})
	}
	return list
}

func limits(s v1.ContainerSpec) runtime.Live {
	return runtime.Live{Memory: s.Limits.Memory, Swap: s.Limits.Swap, CPU: s.Limits.CPU, Pids: s.Limits.Pids, Cpuset: s.Cpuset,
		NoOOMKill: s.Limits.WithoutOOMKill()}
}

// stopTimeoutDiffers reports whether an engine that shuts down would give the
// container another stop timeout than the spec. A container that reports none counts as one
// with the default timeout.
func stopTimeoutDiffers(s v1.ContainerSpec, server runtime.State) bool {
	have := server.StopTimeout
	if have == 0 {
		have = defaultStopTimeout
	}
	return time.Duration(math.Ceil(stopTimeout(s).Seconds()))*time.Second != have
}

// limitsDiffer reports whether a limit of the spec is in force with another value.
// Limits that the spec leaves empty are the engine's defaults and not compared.
func limitsDiffer(s v1.ContainerSpec, live runtime.Live) bool {
	want := limits(s)
	if want.Swap >= 0 {
		live.Swap = max(live.Swap, 0) // a kernel that does not count swap reports no limit for all containers
	}
	return want.Memory > 0 && (want.Memory != live.Memory || want.Swap != live.Swap) ||
		want.NoOOMKill != live.NoOOMKill ||
		want.CPU > 0 && math.Round(want.CPU*1e9) != math.Round(live.CPU*1e9) || // an engine counts billionths
		want.Pids > 0 && want.Pids != live.Pids ||
		want.Cpuset != "" && want.Cpuset != live.Cpuset
}
