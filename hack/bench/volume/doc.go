// Package volume compares runtime/volume with the system's tools and with plain
// system calls, in the same run: go test -bench . -benchtime 3x ./hack/bench/volume.
package volume
