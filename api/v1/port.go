package v1

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"math/bits"
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

// PortSet is a set of ports, 0 to 65535. Its zero value is empty. In JSON it is
// a base64 string of 8 KiB of bits, cut after the last one that is set.
type PortSet struct{ words []uint64 }

// Has reports whether port is in the set.
func (s PortSet) Has(port int) bool {
	w := port >> 6
	return port >= 0 && w < len(s.words) && s.words[w]&(1<<(port&63)) != 0
}

// Add adds port. Ports outside 0 to 65535 are ignored.
func (s *PortSet) Add(port int) {
	if port < 0 || port > 65535 {
		return
	}
	for len(s.words) <= port>>6 {
		s.words = append(s.words, 0)
	}
	s.words[port>>6] |= 1 << (port & 63)
}

// Remove removes port.
func (s *PortSet) Remove(port int) {
	if s.Has(port) {
		s.words[port>>6] &^= 1 << (port & 63)
	}
}

// Len returns the number of ports.
func (s PortSet) Len() int {
	n := 0
	for _, w := range s.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// All yields every port, lowest first.
func (s PortSet) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, w := range s.words {
			for ; w != 0; w &= w - 1 {
				if !yield(i<<6 + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}

// Without returns the ports of s that are not in o.
func (s PortSet) Without(o PortSet) PortSet {
	left := s.Clone()
	for i := range min(len(left.words), len(o.words)) {
		left.words[i] &^= o.words[i]
	}
	return left
}

// At returns the port with n lower ports in the set, or -1 if there is none.
func (s PortSet) At(n int) int {
	for i, w := range s.words {
		if count := bits.OnesCount64(w); n >= count {
			n -= count
			continue
		}
		for range n {
			w &= w - 1
		}
		return i<<6 + bits.TrailingZeros64(w)
	}
	return -1
}

// Equal reports whether both sets hold the same ports.
func (s PortSet) Equal(o PortSet) bool {
	for i := range max(len(s.words), len(o.words)) {
		var a, b uint64
		if i < len(s.words) {
			a = s.words[i]
		}
		if i < len(o.words) {
			b = o.words[i]
		}
		if a != b {
			return false
		}
	}
	return true
}

// Clone returns a copy of s.
func (s PortSet) Clone() PortSet { return PortSet{append([]uint64(nil), s.words...)} }

// MarshalJSON writes the bits, little-endian, without trailing zeros.
func (s PortSet) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, len(s.words)*8)
	for _, w := range s.words {
		for i := range 8 {
			b = append(b, byte(w>>(8*i)))
		}
	}
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return json.Marshal(base64.StdEncoding.EncodeToString(b))
}

// UnmarshalJSON reads the form that MarshalJSON writes.
func (s *PortSet) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) > 8192 {
		return fmt.Errorf("port set: %d bytes of bits: %v", len(b), err)
	}
	s.words = make([]uint64, (len(b)+7)/8)
	for i, v := range b {
		s.words[i/8] |= uint64(v) << (8 * (i % 8))
	}
	return nil
}
