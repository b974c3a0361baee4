// Package server is berth's HTTP API: the table of routes, access control, and the
// handlers. Package edge is the HTTP layer below it, and package ws the WebSockets.
//
// A handler decodes a request, passes it to package intent or reads from the store,
// and answers. The checks before a handler have a fixed order: token, vendor header,
// route, scope, body.
//
// It must not know how a request is carried out. It reaches the rest of berth
// (file content, console input, the configuration) through small interfaces of its
// own, which cmd implements.
package server
