// Package egg converts eggs, the game definitions of the Pterodactyl and Pelican panels, to specs
// of containers.
//
// Import is a pure function: the same request gives the same answer, and nothing is read or
// changed. The command line, the page and other tools call it. Server.Spec is the same for a server
// that a panel has made of an egg (server.go).
//
// An egg comes from the internet. Its size, its values and its depth are bounded before anything
// is built from them, and an expression is compiled only if it is short. A text that berth cannot
// use becomes a note; what makes an egg ambiguous or unreadable is an error that names the field.
//
// The package knows the format of eggs and of specs. It must not know containers, volumes on a
// disk, or HTTP.
package egg
