// Package edge is the HTTP layer below berth's handlers: the listener and its
// limits on connections, bodies and the memory that they may use,
// JSON, answers, and the statuses and texts of errors. It alone configures the HTTP
// library; handlers receive its fiber.Ctx.
//
// It must not know tokens, routes or stored objects. Package server decides who
// may do what, and passes on what this package has to count, such as the id of a
// request's token.
package edge
