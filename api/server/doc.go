// Package server is berth's HTTP API: the table of routes, access control, and the
// handlers. Package edge is the HTTP layer below it.
//
// A handler decodes a request, passes it to package intent or reads from the store,
// and answers. The checks before a handler have a fixed order: token, vendor header,
// route, scope, query, limits, body.
//
// A WebSocket (socket.go) has two goroutines: one reads the client's messages, and one writes what it takes from
// the hub. A client that does not read costs bounded memory; one that is too slow for state events is disconnected
// with 1013 and resumes with since.
//
// It must not know how a request is carried out. It reaches the rest of berth
// (file content, console input, the configuration) through small interfaces of its
// own, which cmd implements.
package server
