// Package cli is berth's command line: `berth serve`, which it only describes, the
// commands of `berth config`, and the commands that call a running daemon through
// its API, as any other client does.
//
// A command prints its data on standard output, in the format that -o names (print.go,
// table.go), and everything else on standard error. Text of tenants is escaped on a
// terminal. An error has an exit code (exit.go); one that arose before the command ran
// is an error of usage. A command for several ids does all of them (each.go).
//
// root.go adds the commands. A command is in a file of its name or of its group: files_put.go,
// backup_policy.go; verbs.go has start, stop and the like, context.go and config*.go their
// groups. connect.go finds the daemon, remedy.go and unready.go explain its errors. manifest.go
// and spec_decode.go read the files of apply. list.go prints lists, with -w again and
// again; describe.go shows one container, container_text.go why it is in its state, and its
// ports. wait*.go waits with --wait, poll.go gets an object until it is done. console.go is the
// terminal of attach; screen.go, terminal.go, color.go and progress.go draw. flags.go checks
// flags, similar.go names what may have been meant, completion*.go is for shells, times.go has
// times and durations.
package cli
