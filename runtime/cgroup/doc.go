// Package cgroup reads the resource usage of containers from the host's kernel:
// cgroup v1 and v2, and /proc for the network. That takes about twenty microseconds
// per container and does not involve the engine.
//
// If the files of a container are not visible, because berth runs in a container, on
// another host or under another cgroup hierarchy, the reader asks a fallback source.
//
// reader.go finds the group of a container and reads its usage, parse.go the single
// files; unlinked.go adds up open files that were deleted.
//
// The package must not know the engine, and changes nothing.
package cgroup
