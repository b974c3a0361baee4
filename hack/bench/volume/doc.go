// Package volume measures runtime/volume against the system's tools and bare
// calls, in the same run: go test -bench . -benchtime 3x ./hack/bench/volume.
package volume
