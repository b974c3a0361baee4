// Package server is berth's HTTP API: the table of routes, access control, and the
// handlers. Package edge is the HTTP layer below it, and package ws the WebSockets.
//
// A handler decodes a request, passes it to package intent or reads from the store,
// and answers. The checks before a handler have a fixed order: token, vendor header,
// route, scope, body.
//
// routes.go is the table of routes, handlers.go assigns their handlers, deps.go has the
// interfaces. access.go makes the checks before a handler, query.go those of query parameters;
// limiter.go and permits.go bound what runs at once, idempotency.go answers repeated requests,
// audit.go writes the audit log (early_entry.go: of uploads), errors.go converts errors.
// decoder.go reads bodies, pages.go cuts lists, sessions.go begins the sessions of transfers.
//
// The handlers of each kind are in files that begin with its name: *_body.go is the JSON of a
// request, *_view.go that of an answer; backup_list.go and container_encoded.go keep it
// encoded. files.go has what file_*.go and archives.go share, conditions.go the conditions of a
// container. container_create.go also applies. console.go has commands, stats and the last
// lines, logs.go sends lines and the whole console; sockets.go opens WebSockets, processes.go executes their messages.
// self.go is about the token of the request, health.go has the public routes and the metrics,
// store_content.go the backup of the store, ui.go the operator's page.
//
// It must not know how a request is carried out. It reaches the rest of berth
// (file content, console input, the configuration) through small interfaces of its
// own, which cmd implements.
package server
