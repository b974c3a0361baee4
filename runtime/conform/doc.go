// Package conform is the test suite of container engines. It checks the contract
// in package runtime against package docker on a real engine, package kubernetes on a
// cluster and package fake, so tests with the fake are valid for the others too. What an
// engine lacks, it must refuse; limits are compared with those of the kernel.
//
// conform.go has the Harness and the list of checks, the other files have the checks by subject.
//
// It knows neither of them. A Harness gives it an engine and functions that act
// on the host.
package conform
