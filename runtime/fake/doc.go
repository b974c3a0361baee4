// Package fake is a container engine in memory, for tests. It passes the same
// conformance suite as package docker. It works inside a testing/synctest bubble:
// it starts no goroutines and waits only on channels.
//
// A test controls the host through World, which Engine embeds: containers exit,
// vanish or are started from outside, images appear, pulls hang, ports are
// taken. The functions set by Fail and After are called before and after every
// operation, so that it can fail before or after it took effect.
package fake
