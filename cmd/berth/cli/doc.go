// Package cli is berth's command line: `berth serve`, which it only describes, the
// commands of `berth config`, and the commands that call a running daemon through
// its API, as any other client does.
//
// A command prints its data on standard output, as text or with -o json as JSON,
// and everything else on standard error. Text of tenants is escaped on a terminal.
package cli
