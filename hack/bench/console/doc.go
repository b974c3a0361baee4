// Package console measures the console of the real berth over WebSockets, with
// the engine and the clients on the same machine:
// go test -bench . -benchtime 1x ./hack/bench/console.
package console
