// Package firewall keeps allow rules for incoming traffic in force on the host.
//
// A set of rules is synced as a whole, separately for IPv4 and IPv6, into a chain
// that belongs to one store: one atomic step adds missing rules and removes others.
// Syncing again changes nothing, and repairs the chain after a flush. Rules outside
// the chain are never touched.
//
// The rules accept packets in INPUT: for processes of the host, and for containers in
// the host's network. Ports that Docker publishes do not pass INPUT (they are
// redirected and forwarded), so these rules neither open nor close them.
//
// The package must not know port pools, or which container needs a rule.
package firewall
