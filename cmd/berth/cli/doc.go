// Package cli is berth's command line: `berth serve`, which it only describes, the
// commands of `berth config`, and the commands that call a running daemon through
// its API, as any other client does.
//
// A command prints its data on standard output, in the format that -o names (print.go,
// table.go), and everything else on standard error. Text of tenants is escaped on a
// terminal. An error has an exit code (errors.go); one that arose before the command ran
// is an error of usage. A command for several ids does all of them.
package cli
