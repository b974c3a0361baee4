// Package doctor checks a host and its berth: the engine, the kernel's limits, the
// disks, the firewall, the certificate, the configuration, the store and the panel.
// Each check is a row of one table, and its result is ok, warn or fail with a remedy.
//
// checks.go is the table. The checks of the host are in host.go, of the engine in engine.go, of
// the configuration, the daemon, the store and the certificate in daemon.go, others in a file
// of their name. doctor.go runs them, bundle.go writes a bundle, redact.go removes its secrets.
//
// It works whether or not the daemon runs. It asks a running daemon through its API and
// opens the store of none; it changes nothing on the host, and sends a panel nothing
// but a HEAD request. A bundle of its results has no secrets.
package doctor
