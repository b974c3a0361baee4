// Package doctor checks a host and its berth: the engine, the kernel's limits, the
// disks, the firewall, the certificate, the configuration, the store and the panel.
// Each check is a row of one table, and its result is ok, warn or fail with a remedy.
//
// It works whether or not the daemon runs. It asks a running daemon through its API and
// opens the store of none; it changes nothing on the host, and sends a panel nothing
// but a HEAD request.
package doctor
