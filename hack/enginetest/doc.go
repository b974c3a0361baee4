// Package enginetest is Docker for tests: a small client over the engine's
// socket, images that need no network, registries, and engines of a test's own
// that it may kill. Only tests import it. It must not import Docker's client,
// so that what it sees does not depend on the code under test.
//
// An engine must answer; hack/docker.sh gets and starts one. Without it the
// helpers fail the test and say so, they never skip.
//
// The engine is shared by all who test on this machine. Name containers
// uniquely, and clean up only what is your own; CleanStore does that by label.
package enginetest
