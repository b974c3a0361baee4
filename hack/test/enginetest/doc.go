// Package enginetest provides Docker to tests: a small client over the engine's
// socket, images that need no network, registries, and isolated engines that a
// test may kill. Only tests import it. It does not import Docker's client, so its
// observations do not depend on the code under test.
//
// An engine must answer; hack/docker.sh installs and starts one. Without an
// engine the helpers fail the test and name the remedy. They never skip it.
//
// To run a test on another version of Docker:
//
//	hack/engines.sh with sid go test ./runtime/docker -run TestConform
//
// The script sets DOCKER_HOST to that engine and BERTH_ENGINE_ROOT to the
// directory with its programs, which StartIsolated uses too. bookworm is Docker
// 20.10, trixie 26.1, sid 28.5; the first call on a machine takes two minutes to
// create the directory. A test changes versions with Root and Isolated.Use.
//
// All tests on the machine share the engine. Give containers unique names and
// remove only your own; CleanStore does that by label.
package enginetest
