// Package node is what a panel of the Pterodactyl and Pelican family and its customers' browsers see of
// a node. routes.go is the table of its addresses; each names the function that answers it.
//
// What happens behind it is berth's: a server is a container and a volume of berth with the server's
// UUID (berth.go). The package keeps what the panel sent about each server, and what berth reported
// last, in memory alone: at its start it asks both again (node.go).
//
// What it does for a customer it does with a token of berth that is limited to the customer's server,
// so an error of this package opens nothing else.
//
// It must not know berth's store, controllers or engines: it calls berth as every client does.
package node
