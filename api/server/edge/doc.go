// Package edge is the HTTP layer below berth's handlers: the listener and its
// limits on connections, canonical paths, bodies and the memory that they may use,
// JSON, answers, and the statuses and texts of errors. It alone configures the HTTP
// library; handlers receive its fiber.Ctx.
//
// server.go has the server and the order of its middleware: observe.go, canonical.go,
// expect.go, drain.go, and origin.go with cors.go for pages of other sites. listener.go accepts
// connections, connections.go limits their number, conn.go is one of them. bodies.go reads JSON
// bodies within a budget (budget.go); decode.go fills structs, json.go scans JSON. content*.go
// and spool.go read bodies with the content of a file, upload.go and pace.go streams. reply.go
// answers, file.go sends files, errors.go has errors and their statuses. request.go has the
// parameters of a request and its locals, context.go its context, client_ip.go the address of
// its client, request_log.go its line in the log; failures.go delays clients with wrong
// tokens, and limits the lines about refused requests.
//
// It must not know tokens, routes or stored objects. Package server decides who
// may do what, and passes on what this package has to count, such as the id of a
// request's token.
package edge
