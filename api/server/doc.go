// Package server speaks the interface: HTTP and WebSocket, JSON in and out,
// who may ask for what, how much, and the texts and statuses of refusals.
//
// A handler decodes and checks a request, hands it to package intent or reads
// from the store, and answers. Every check that comes before a handler is in
// the order that the contract fixes: token, vendor header, route, scope, body.
//
// It must not know how a wish is carried out. What it needs of the rest of
// berth (file content, console input, the configuration) are small interfaces
// of its own, wired in cmd.
package server
