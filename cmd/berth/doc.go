// Command berth is the daemon, and its command line.
//
// This package creates the parts of the daemon, connects them, starts them in a
// defined order and stops them in the reverse order. It decides nothing about
// containers. The configuration is in package config, the command line in package cli.
//
// serve.go runs the daemon and stops it, gc.go paces its garbage collector. daemon.go creates
// its parts, loops.go with backups.go and downloads.go the controllers, adapters.go fits parts
// to the interfaces of others. health.go checks the store and the engine; node.go observes the
// host, node_conditions.go stores changes of its state, node_metrics.go exports it, roots.go
// measures what containers write outside their volumes. egress.go and firewall.go use package
// firewall, sftp.go package sftp; log.go makes the log, systemd.go notifies systemd.
package main
