package intent

import (
	"cmp"
	"errors"
	"maps"
	"net/netip"
	"slices"

	v1 "berth/api/v1"
	"berth/store"
)

// PortEntry is one port of the pool as a client sees it.
type PortEntry struct {
	IP        string
	Port      int
	Protocol  string
	InUse     bool   // the flag
	Container string // that has claimed it; empty: none
	Firewall  Rule
}

// Ref returns the reference to the port.
func (e PortEntry) Ref() PortRef { return PortRef{e.IP, e.Port, e.Protocol} }

// Rule is the state of the firewall's allow rule of a port.
type Rule struct{ State, Reason string }

// entry returns a port of pool o with its claim c, which is zero if there is none.
func entry(o v1.Pool, port int, c v1.Claim) PortEntry {
	e := PortEntry{IP: o.Spec.IP, Port: port, Protocol: o.Spec.Protocol,
		InUse: c.InUse || c.Container == "" && o.Spec.Flagged.Has(port), Container: c.Container}
	switch {
	case o.Status.Allowed.Has(port):
		e.Firewall.State = v1.FirewallApplied
	case o.Status.State == "", o.Status.State == v1.FirewallApplied:
		e.Firewall.State = v1.FirewallPending
	default:
		e.Firewall = Rule{o.Status.State, o.Status.Reason}
	}
	return e
}

// claimedEntry reads the claim of a port, and returns its entry.
func claimedEntry(tx *store.Tx, o v1.Pool, port int) (PortEntry, error) {
	c, err := store.GetClaim(tx, o.Meta.ID, port)
	return entry(o, port, c), err
}

// GetPort returns a port of the pool, or v1.ErrPortNotFound. For both protocols it
// returns the port of tcp.
func GetPort(tx *store.Tx, r PortRef) (PortEntry, error) {
	for _, id := range r.ids() {
		o, err := store.Pools.Get(tx, id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return PortEntry{}, err
		}
		if err == nil && o.Spec.Ports.Has(r.Port) {
			return claimedEntry(tx, o, r.Port)
		}
	}
	return PortEntry{}, v1.ErrPortNotFound
}

// Pool is a part of the pool with the claims of its ports.
type Pool struct {
	v1.Pool
	claims map[int]v1.Claim
}

// Pools returns every part of the pool, by address and protocol.
func Pools(tx *store.Tx) ([]Pool, error) {
	list, err := store.Pools.List(tx)
	if err != nil {
		return nil, err
	}
	pools := make([]Pool, 0, len(list))
	for _, o := range list {
		pools = append(pools, Pool{o, maps.Collect(store.Claims(tx, o.Meta.ID))})
	}
	slices.SortFunc(pools, func(a, b Pool) int { return comparePool(a.Spec, b.Spec.IP, b.Spec.Protocol) })
	return pools, nil
}

func comparePool(a v1.PoolSpec, ip, protocol string) int {
	return cmp.Or(compareIP(a.IP, ip), cmp.Compare(a.Protocol, protocol))
}

// EntriesAfter is Entries from the port behind one that was in the pool.
func EntriesAfter(pools []Pool, after PortRef, yield func(PortEntry) bool) {
	i, _ := slices.BinarySearchFunc(pools, after, func(o Pool, r PortRef) int { return comparePool(o.Spec, r.IP, r.Protocol) })
	Entries(pools[i:], func(e PortEntry) bool {
		before := e.IP == after.IP && e.Protocol == after.Protocol && e.Port <= after.Port
		return before || yield(e)
	})
}

// Entries yields the ports of pools, in order, until yield returns false.
func Entries(pools []Pool, yield func(PortEntry) bool) {
	for _, o := range pools {
		for port := range o.Spec.Ports.All() {
			if !yield(entry(o.Pool, port, o.claims[port])) {
				return
			}
		}
	}
}

// compareIP orders canonical addresses: IPv4 before IPv6, then by value.
func compareIP(a, b string) int {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	if errX != nil || errY != nil {
		return cmp.Compare(a, b)
	}
	return x.Compare(y)
}
