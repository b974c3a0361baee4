package intent

import (
	"cmp"
	"errors"
	"iter"
	"maps"
	"net/netip"
	"slices"

	v1 "berth/api/v1"
	"berth/store"
)

// entry returns a port of pool o with its claim c, which is zero if there is none.
func entry(o v1.Pool, port int, c v1.Claim) v1.PoolPort {
	e := v1.PoolPort{PortRef: v1.PortRef{IP: o.Spec.IP, Port: port, Protocol: o.Spec.Protocol},
		InUse: c.InUse || c.Container == "" && o.Spec.Flagged.Has(port), Container: v1.NullString(c.Container)}
	switch {
	case o.Status.Allowed.Has(port):
		e.Firewall.State = v1.FirewallApplied
	case o.Status.State == "", o.Status.State == v1.FirewallApplied:
		e.Firewall.State = v1.FirewallPending
	default:
		e.Firewall = v1.Rule{State: o.Status.State, Reason: v1.NullString(o.Status.Reason)}
	}
	return e
}

// claimedEntry reads the claim of a port, and returns its entry.
func claimedEntry(tx *store.Tx, o v1.Pool, port int) (v1.PoolPort, error) {
	c, err := store.GetClaim(tx, o.Meta.ID, port)
	return entry(o, port, c), err
}

// GetPort returns a port of the pool, or v1.ErrPortNotFound. For both protocols it
// returns the port of tcp.
func GetPort(tx *store.Tx, r v1.PortRef) (v1.PoolPort, error) {
	for _, id := range poolsOf(r) {
		o, err := store.Pools.Get(tx, id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return v1.PoolPort{}, err
		}
		if err == nil && o.Spec.Ports.Has(r.Port) {
			return claimedEntry(tx, o, r.Port)
		}
	}
	return v1.PoolPort{}, v1.ErrPortNotFound
}

// Pool is a part of the pool with the claims of its ports.
type Pool struct {
	v1.Pool
	claims map[int]v1.Claim
}

// Pools returns every part of the pool, by address and protocol, with all claims.
func Pools(tx *store.Tx) ([]Pool, error) {
	list, err := sortedPools(tx)
	if err != nil {
		return nil, err
	}
	pools := make([]Pool, 0, len(list))
	for _, o := range list {
		pools = append(pools, Pool{o, maps.Collect(store.Claims(tx, o.Meta.ID, 0))})
	}
	return pools, nil
}

func sortedPools(tx *store.Tx) ([]v1.Pool, error) {
	list, err := store.Pools.List(tx)
	slices.SortFunc(list, func(a, b v1.Pool) int { return comparePool(a.Spec, b.Spec.IP, b.Spec.Protocol) })
	return list, err
}

func comparePool(a v1.PoolSpec, ip, protocol string) int {
	return cmp.Or(compareIP(a.IP, ip), cmp.Compare(a.Protocol, protocol))
}

// Entries yields the ports of pools, in order, until yield returns false.
func Entries(pools []Pool, yield func(v1.PoolPort) bool) {
	for _, o := range pools {
		for port := range o.Spec.Ports.All() {
			if !yield(entry(o.Pool, port, o.claims[port])) {
				return
			}
		}
	}
}

// EntriesAfter yields the ports of all pools behind one that was in the pool, in the order of
// Entries, until yield returns false. After the zero v1.PortRef it yields all. It reads the
// claims of the ports that it yields.
func EntriesAfter(tx *store.Tx, after v1.PortRef, yield func(v1.PoolPort) bool) error {
	pools, err := sortedPools(tx)
	if err != nil {
		return err
	}
	i, found := 0, false
	if after != (v1.PortRef{}) {
		i, found = slices.BinarySearchFunc(pools, after, func(o v1.Pool, r v1.PortRef) int { return comparePool(o.Spec, r.IP, r.Protocol) })
	}
	for _, o := range pools[i:] {
		from := 0
		if found {
			from, found = after.Port+1, false
		}
		if !entriesFrom(tx, o, from, yield) {
			break
		}
	}
	return nil
}

// entriesFrom yields the ports of a pool from a port on. It returns false if yield did.
func entriesFrom(tx *store.Tx, o v1.Pool, from int, yield func(v1.PoolPort) bool) bool {
	next, stop := iter.Pull2(store.Claims(tx, o.Meta.ID, from))
	defer stop()
	claimed, claim, more := next()
	for port := range o.Spec.Ports.All() {
		if port < from {
			continue
		}
		for more && claimed < port {
			claimed, claim, more = next()
		}
		var c v1.Claim
		if more && claimed == port {
			c = claim
		}
		if !yield(entry(o, port, c)) {
			return false
		}
	}
	return true
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
