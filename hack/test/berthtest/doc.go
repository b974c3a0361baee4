// Package berthtest runs the real berth for tests: it builds the binary, starts
// it with a configuration and a store of its own, kills and restarts it, and calls it
// through package client or with raw requests. Every response is checked against the
// OpenAPI document. When the test ends, its log is searched for panics and data races,
// and log, metrics, refusals, environment, arguments and containers are searched for
// every token and password; then the engine's containers of that store are removed.
//
// It knows berth as a panel does, and the engine through enginetest; it must not read
// berth's store. A test waits for other programs by polling with a deadline: Until.
package berthtest
