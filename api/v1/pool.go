package v1

import "fmt"

// Pool is the part of the network port pool with one address and protocol. One object
// holds all of its ports, so that a range of 65,535 ports is one write. Its id is
// PoolID(ip, protocol).
type Pool = Object[PoolSpec, PoolStatus]

// PoolSpec holds the ports of the pool and the in_use flags of ports without a claim.
// Its size is limited: two sets of 8 KiB.
type PoolSpec struct {
	IP       string  `json:"ip"` // canonical literal
	Protocol string  `json:"protocol"`
	Ports    PortSet `json:"ports"`
	Flagged  PortSet `json:"flagged"` // in_use, of ports without a claim
}

// Claim is the claim of one container on one port of a pool. Each is a record of its
// own beside the pool.
type Claim struct {
	Container string `json:"container"` // internal_id
	InUse     bool   `json:"in_use"`    // the flag of a port that is claimed
}

// PoolStatus is the state of the firewall rules of a pool.
type PoolStatus struct {
	Allowed PortSet `json:"allowed"`          // ports whose allow rule is in force
	State   string  `json:"state,omitempty"`  // of the last sync, or pending; empty: no sync yet
	Reason  string  `json:"reason,omitempty"` // of a state that is not applied
}

// The states of a pool entry's firewall rule.
const (
	FirewallApplied     = "applied"
	FirewallPending     = "pending"
	FirewallUnavailable = "unavailable"
	FirewallDisabled    = "disabled"
)

// PoolID returns the id of the Pool of an address and a protocol.
func PoolID(ip, protocol string) string { return fmt.Sprintf("%s-%s", protocol, ip) }
