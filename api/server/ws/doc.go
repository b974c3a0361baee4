// Package ws is berth's WebSockets: it sends a client the missed transitions, the
// current states and the console of one container or of the whole node, then
// everything new, and executes the client's messages.
//
// A socket has two goroutines: one reads, and one writes what it takes from the hub. A client that does not read costs bounded memory; a client that is too slow
// for state events is disconnected with 1013 and resumes with since.
//
// It must not know routes and bodies. Package server authenticates the request,
// reads its parameters, and carries out what clients ask for (see Containers).
package ws
