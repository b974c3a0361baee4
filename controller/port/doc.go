// Package port keeps the firewall's allow rules equal to the port pools.
//
// The controller has two keys, one for each address family, because a host has a
// table of rules for each. Every reconcile syncs all rules of a family. So it
// repairs a flush, and removes the rule of an entry that was deleted while the
// daemon was down. The status of a pool records which of its ports have a rule,
// and the reason if they have none.
//
// The package does not know how a firewall works. A pool works without one: if the
// firewall refuses rules, only the status of the pools changes.
package port
