// Package scale measures what grows with the number of containers: a node of real
// parts, its store on a disk and its API over HTTP, on the engine in memory.
//
//	go test -run '^$' -bench . -benchtime 1x ./hack/bench/scale
package scale
