// Package enginetest is Docker for tests: a small client over the engine's
// socket, images that need no network, registries, and engines of a test's own
// that it may kill. Only tests import it. It must not import Docker's client,
// so that what it sees does not depend on the code under test.
//
// An engine must answer; hack/docker.sh gets and starts one. Without it the
// helpers fail the test and name the remedy, they never skip.
//
// A test runs on another version of Docker beside an engine of that version:
//
//	hack/engines.sh with sid go test ./runtime/docker -run TestConform
//
// DOCKER_HOST is then that engine, and BERTH_ENGINE_ROOT the folder with its
// programs, which StartIsolated uses too. bookworm is Docker 20.10, trixie
// 26.1, sid 28.5; the first call on a machine makes the folder in two minutes.
// One test changes versions with Root and Isolated.Use.
//
// The engine is shared by all tests on this machine. Name containers
// uniquely, and remove only your own; CleanStore does that by label.
package enginetest
