// Package cgroup reads what containers use from the files of the host's kernel:
// cgroup v1 and v2, and /proc for the network. That costs some twenty
// microseconds a container, and an engine nothing at all.
//
// Where the files of a container are not to be seen, because berth runs in a
// container of its own, on another host, or under another hierarchy, the next
// source is asked.
//
// It must not know the engine, and changes nothing.
package cgroup
