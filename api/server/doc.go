// Package server is berth's HTTP and WebSocket API: routes, access control,
// limits, JSON bodies, and the statuses and texts of errors.
//
// A handler decodes and validates a request, passes it to package intent or reads
// from the store, and answers. The checks before a handler have a fixed order:
// token, vendor header, route, scope, body.
//
// It must not know how a request is carried out. It reaches the rest of berth
// (file content, console input, the configuration) through small interfaces of its
// own, which cmd implements.
package server
