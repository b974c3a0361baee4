// Package berthtest runs the real berth for tests: it builds the binary, starts
// it with a configuration and a store of its own, kills it and starts it again,
// and speaks HTTP and WebSocket with it. Every response is checked against the
// OpenAPI document; at the end every log is searched for panics and data races,
// and log, metrics, refusals, environment, arguments and containers for every
// token and password; and the engine's containers of that store are removed.
//
// It knows berth as a panel does, and the engine through enginetest; it must
// not look into berth's store. What other programs do is waited for by polling
// with a deadline: Until.
package berthtest
