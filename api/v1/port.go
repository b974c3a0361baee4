package v1

import (
	"net"
	"strconv"
)

// PortRef refers to ports of the pool. An empty protocol means both.
type PortRef struct {
	IP       string `json:"ip" api:"required"` // canonical literal
	Port     int    `json:"port" api:"required"`
	Protocol string `json:"protocol,omitempty"` // tcp or udp
}

// IgnoredFields returns the read-only fields of a pool entry, so that one can be sent as a reference.
func (PortRef) IgnoredFields() []string { return Port{}.IgnoredFields() }

// String returns "ip:port/protocol", without the protocol if it is empty.
func (r PortRef) String() string {
	address := net.JoinHostPort(r.IP, strconv.Itoa(r.Port))
	if r.Protocol == "" {
		return address
	}
	return address + "/" + r.Protocol
}

// PortRequest is the body of a request that adds a port to the pool.
type PortRequest struct {
	IP       string `json:"ip" api:"required"`
	Port     int    `json:"port" api:"required"`
	Protocol string `json:"protocol" api:"required"`
}

// IgnoredFields returns the read-only fields of a pool entry.
func (PortRequest) IgnoredFields() []string { return Port{}.IgnoredFields() }

// PortRangesRequest is the body of a request that adds ports such as "25565-25600,30000".
type PortRangesRequest struct {
	IP       string `json:"ip" api:"required"`
	Ports    string `json:"ports" api:"required"`
	Protocol string `json:"protocol" api:"required"`
}

// PoolPort is a port of the pool as clients receive it.
type PoolPort struct {
	PortRef
	InUse     bool       `json:"in_use"`
	Container NullString `json:"container"` // internal_id of the container that has claimed it; empty: none
	Firewall  Rule       `json:"firewall"`
}

// Rule is the state of the firewall's allow rule of a port.
type Rule struct {
	State  string     `json:"state"`  // applied, pending, unavailable or disabled
	Reason NullString `json:"reason"` // of a state that is not applied
}

// ClaimedPort is a port that was not deleted because a container has claimed it.
type ClaimedPort struct {
	PortRef
	Container string `json:"container"`
}
