// Package firewall keeps allow rules for incoming traffic in force on the host.
//
// A set of rules is synced as a whole, for IPv4 and for IPv6 each, into a chain
// that belongs to one store: what is missing is added, what is there and not
// wanted goes, in one atomic step. Syncing again changes nothing; after a flush
// it repairs. Rules of others are never touched.
//
// The rules let packets through INPUT: to processes of the host, and to
// containers in the host's network. Ports that Docker publishes do not pass
// INPUT (they are redirected and forwarded), so no rule here opens or closes them.
//
// It must not know what a port pool is, or who wants a rule.
package firewall
