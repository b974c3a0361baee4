// Package port keeps the port pool's allow rules in force in the firewall.
//
// There are two keys, one for each family of addresses, because a host has a
// table of rules for each. Every look syncs the whole set of a family: so a
// flush is repaired, and a rule goes with its entry even if the entry went while
// the daemon was down. The status of a pool says which of its ports have their
// rule, and if not, why.
//
// It must not know how a firewall works. The pool never depends on one: what a
// firewall refuses is noted, and nothing else happens.
package port
