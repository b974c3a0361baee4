package container

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
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

// comment matches a comment, which a shell leaves out.
var comment = regexp.MustCompile(`(^|\s)#`)

func stopTimeout(s v1.ContainerSpec) time.Duration {
	if s.Stop.Timeout > 0 {
		return time.Duration(s.Stop.Timeout)
	}
	return defaultStopTimeout
}

// stopSignal returns the signal of the spec, of the image, or the default.
func stopSignal(s v1.ContainerSpec, server runtime.State) string {
	return cmp.Or(s.Stop.Signal, server.StopSignal, defaultStopSignal)
}

// stopOf returns what asks a run to exit: input for the console, and the signal in its place where the
// console does not accept it, or there is no input. A caret stands for a control character, as
// ^C, which a terminal makes SIGINT, or for a signal, as ^SIGTERM.
func stopOf(s v1.ContainerSpec, server runtime.State) (input, signal string) {
	command, signal := s.Stop.Command, stopSignal(s, server)
	if command == "^^C" || command == "^^c" { // authors of eggs mean ^C
		command = command[1:]
	}
	name, caret := strings.CutPrefix(command, "^")
	switch upper := strings.ToUpper(name); {
	case caret && strings.HasPrefix(upper, "SIG"):
		return "", upper
	case caret && upper == "C" && !server.TTY:
		return "", "SIGINT"
	case caret && len(upper) == 1 && upper[0] >= 'A' && upper[0] <= 'Z':
		if upper == "C" {
			signal = "SIGINT"
		}
		return string(upper[0] & 0x1f), signal
	}
	return command, signal
}

func serverName(id string) runtime.Name    { return runtime.Name{ID: id, Role: runtime.Server} }
func installerName(id string) runtime.Name { return runtime.Name{ID: id, Role: runtime.Install} }

// commonSpec returns the fields that the containers of both roles share.
func commonSpec(c v1.Container, volume runtime.Mount) runtime.Spec {
	s := c.Spec
	volume.Target = v1.Home
	return runtime.Spec{
		Revision:  c.Meta.Revision,
		Env:       environment(s, ""),
		Mounts:    []runtime.Mount{volume},
		Live:      limits(s),
		IOWeight:  s.Limits.IOWeight,
		ShmSize:   s.ShmSize,
		User:      s.User,
		Workdir:   v1.Home,
		Home:      v1.Home,
		MachineID: machineID(c.Meta.UID),
		Placement: placement(s.Placement),
	}
}

func placement(p v1.Placement) runtime.Placement {
	place := runtime.Placement{NodeSelector: p.NodeSelector, RuntimeClass: p.RuntimeClass, PriorityClass: p.PriorityClass}
	for _, t := range p.Tolerations {
		place.Tolerations = append(place.Tolerations, runtime.Toleration(t))
	}
	return place
}

// machineID returns an id for a container that other containers do not have, and that it
// keeps whenever it is created again.
func machineID(uid string) string {
	sum := sha256.Sum256([]byte("machine-id " + uid))
	return hex.EncodeToString(sum[:16])
}

func serverSpec(c v1.Container, volume runtime.Mount) runtime.Spec {
	spec, s := commonSpec(c, volume), v1.WithDefaults(c.Spec)
	spec.Name, spec.SpecHash = serverName(c.Meta.ID), s.SpecHash()
	spec.Image = s.Image
	spec.Command = command(s.StartupCommand)
	spec.TTY, spec.Labels, spec.StopSignal, spec.Hostname = *s.TTY, s.Labels, s.Stop.Signal, s.Hostname
	if s.Workdir != "" || len(spec.Command) == 0 { // the image's command needs the image's directory
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

func installerSpec(c v1.Container, volume runtime.Mount) runtime.Spec {
	spec, s := commonSpec(c, volume), c.Spec
	spec.Name, spec.SpecHash = installerName(c.Meta.ID), s.InstallHash()
	shell := cmp.Or(s.InstallEntrypoint, "/bin/sh") // the script's own #! line is a comment to it
	script := strings.ReplaceAll(strings.TrimPrefix(s.Script(), "\ufeff"), "\r\n", "\n")
	spec.Image, spec.Command = installImage(s), []string{shell, "-c", script}
	spec.User = cmp.Or(s.InstallUser, s.User)
	spec.Entrypoint = s.InstallEntrypoint != "" // as the panels of eggs do
	spec.Workdir = cmp.Or(s.InstallMount, v1.Home)
	spec.Mounts[0].Target = spec.Workdir
	if _, set := s.Env["HOME"]; !set {
		spec.Env = append(spec.Env, "HOME="+spec.Workdir)
		slices.Sort(spec.Env)
	}
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
//
// A single program replaces the shell. For any other line the stop signal goes to the program
// too, and the shell ends after the program that it waits for, with its exit code.
func command(line string) []string {
	line = strings.TrimSuffix(strings.ReplaceAll(line, "\r\n", "\n"), "\r")
	line = strings.TrimRight(line, "\n")
	if strings.TrimSpace(line) == "" {
		return nil
	}
	words, err := shellwords.Parse(line)
	bad := err != nil || len(words) == 0
	switch {
	case bad || strings.ContainsAny(line, operators) || assignment.MatchString(words[0]) || slices.Contains(builtins, words[0]):
		return []string{"/bin/sh", "-c", awaitProgram + line}
	case words[0] == "exec":
		return []string{"/bin/sh", "-c", line}
	case strings.ContainsAny(line, "$*?[~"), comment.MatchString(line):
		return []string{"/bin/sh", "-c", "exec " + line}
	}
	return words
}

const (
	operators = "|&;<>()`\n" // or of compound commands

	// awaitProgram makes a shell end with the program that it waits for, with its exit code,
	// once it has received a signal.
	awaitProgram = "trap 'exit $?' HUP INT QUIT TERM USR1 USR2\n"
)

// builtins are words that exec does not take.
var builtins = []string{"!", ".", ":", "[", "{", "alias", "cd", "command", "echo", "eval", "exit", "export", "false", "if",
	"printf", "read",
	"return", "set", "shift", "source", "test", "time", "trap", "true", "ulimit", "umask", "unset", "until", "wait", "while"}

// environment returns the variables of a container. The time zone is one of them,
// unless the client sets TZ itself.
func environment(s v1.ContainerSpec, gateway string) []string {
	list := make([]string, 0, len(s.Env)+1)
	for k, v := range s.ExpandedEnv(gateway) {
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

// outdated reports whether an existing server container was created from an older spec.
func outdated(c v1.Container, server runtime.State) bool {
	return exists(server) && server.SpecHash != c.Spec.SpecHash()
}

// limitsOf returns the limits that can be in force in an existing server container: one of an older
// spec neither gains nor loses a limit.
func limitsOf(c v1.Container, server runtime.State) runtime.Live {
	want, live := limits(c.Spec), server.Live
	if !outdated(c, server) {
		return want
	}
	if live.Memory == 0 || want.Memory == 0 {
		want.Memory, want.Swap = live.Memory, live.Swap
	}
	if (live.Swap < 0) != (want.Swap < 0) {
		want.Swap = live.Swap
	}
	if live.CPU == 0 {
		want.CPU = 0
	}
	if live.Cpuset == "" {
		want.Cpuset = ""
	}
	want.NoOOMKill = live.NoOOMKill
	return want
}

// limitsDiffer reports whether a limit of the spec is in force with another value.
// Limits that the spec leaves empty are the engine's defaults and not compared.
func limitsDiffer(c v1.Container, server runtime.State) bool {
	want, live := limitsOf(c, server), server.Live
	if want.Swap >= 0 {
		live.Swap = max(live.Swap, 0) // a kernel that does not count swap reports no limit for all containers
	}
	return want.Memory > 0 && (want.Memory != live.Memory || want.Swap != live.Swap) ||
		want.NoOOMKill != live.NoOOMKill ||
		want.CPU > 0 && math.Round(want.CPU*1e9) != math.Round(live.CPU*1e9) || // an engine counts billionths
		want.Pids > 0 && want.Pids != live.Pids ||
		want.Cpuset != "" && want.Cpuset != live.Cpuset
}
