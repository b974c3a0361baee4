// Package fake is a container engine in memory, for tests. It passes the same
// conformance suite as package docker, and works inside a testing/synctest
// bubble: it starts no goroutine of its own and waits on channels only.
//
// A test plays the host through World, which Engine embeds: containers exit,
// vanish or are started from outside, images appear, pulls hang, ports are
// taken. Fail and After are asked before and after every operation, so that
// each can fail before it took effect, and after.
package fake
