package docker

import (
	"slices"
	"strings"

	"berth/runtime/keeper"
)

// hostTexts are parts of the engine's messages about the host itself: what its containers start
// with, its control groups, firewall and networks. They are looked for before the first quotation
// mark, so that no command, path or name of a client can imitate one.
var hostTexts = []string{
	"unable to retrieve oci runtime error", // the runtime is missing or cannot be executed
	"unknown or invalid runtime name",
	"iptables failed",
	"failed to setup ip tables",
	"non-overlapping ipv4 address pool",
	"address pools have been fully subnetted",
	"no available ipv4 addresses",
	"failed to add the host", // its interface of a container
	"could not find bridge",
	"cgroup mountpoint does not exist",
	"cannot find cgroup mount destination",
	"no cgroup mount found",
	"apparmor profile",
	"seccomp filter",
	"error creating overlay mount",
	"failed to mount overlay",
}

// diskTexts are such parts of messages that are not about a container's own files.
var diskTexts = []string{"read-only file system", "input/output error", "structure needs cleaning"}

// firstProcesses are the programs that containers start with, which the host provides. Those that an older
// berth has created start with the engine's init.
var firstProcesses = []string{"/sbin/docker-init", keeper.Path}

// isHostFault reports whether a message, in lower case, is about the host, which then cannot start
// any container.
func isHostFault(text string) bool {
	head, rest, quotes := strings.Cut(text, `"`)
	contains := func(part string) bool { return strings.Contains(head, part) }
	runtime := strings.Contains(head, "oci runtime")
	switch {
	case strings.Contains(text, "did not terminate successfully: signal:"): // it was killed
		return false
	case slices.ContainsFunc(hostTexts, contains), !runtime && slices.ContainsFunc(diskTexts, contains):
		return true
	case !quotes || !strings.HasSuffix(head, "exec: "):
		return false
	}
	program, problem, _ := strings.Cut(rest, `"`)
	if program == keeper.Path && strings.Contains(problem, "permission denied") {
		return false // the folder of the keeper is open to all: the image's root is closed to its user
	}
	return !runtime || slices.Contains(firstProcesses, program) // the engine looks only for programs of the host
}
