// Package conform is the one test suite of container engines: what runtime
// promises of their methods, run against package docker on a real engine and
// against package fake. So what is tested with the fake holds for Docker.
//
// It must know neither of them. A Harness gives it an engine, and hands to
// play the host with.
package conform
