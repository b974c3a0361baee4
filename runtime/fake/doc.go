// Package fake is a container engine in memory, for tests. It passes the same
// conformance suite as package docker. It works inside a testing/synctest bubble:
// it starts no goroutines and waits only on channels.
//
// A test controls the host through World, which Engine embeds: containers exit,
// vanish or are started from outside, images appear, pulls hang, ports are
// taken. The functions set by Fail and After are called before and after every
// operation, so that it can fail before or after it took effect.
//
// engine.go has the state, the list and the inspect; lifecycle.go, image.go, watch.go and
// console.go (logs, input, usage) have the other methods of an Engine. world.go is how a test
// changes containers, host.go how it changes the machine, fault.go how calls fail.
package fake
