package intent

import (
	"cmp"
	"errors"
	"maps"
	"math/rand/v2"
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

// GetPort returns a port of the pool, or v1.ErrPortNotFound. For both protocols it
// returns the port of tcp.
func GetPort(tx *store.Tx, r v1.PortRef) (v1.PoolPort, error) {
	for _, id := range poolsOf(r) {
		o, err := store.Pools.Get(tx, id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return v1.PoolPort{}, err
		}
		if err == nil && o.Spec.Ports.Has(r.Port) {
			c, err := store.GetClaim(tx, o.Meta.ID, r.Port)
			return entry(o, r.Port, c), err
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
	list, err := store.Pools.List(tx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b v1.Pool) int { return comparePool(a.Spec, b.Spec.IP, b.Spec.Protocol) })
	pools := make([]Pool, 0, len(list))
	for _, o := range list {
		pools = append(pools, Pool{o, maps.Collect(store.Claims(tx, o.Meta.ID, 0))})
	}
	return pools, nil
}

func comparePool(a v1.PoolSpec, ip, protocol string) int {
	return cmp.Or(compareIP(a.IP, ip), cmp.Compare(a.Protocol, protocol))
}

// Entries yields the ports of pools, in order, behind one that was in the pool, until yield
// returns false. After the zero v1.PortRef it yields all.
func Entries(pools []Pool, after v1.PortRef, yield func(v1.PoolPort) bool) {
	for _, o := range pools {
		order := comparePool(o.Spec, after.IP, after.Protocol)
		if order < 0 && after != (v1.PortRef{}) {
			continue
		}
		for port := range o.Spec.Ports.All() {
			if order == 0 && port <= after.Port {
				continue
			}
			if !yield(entry(o.Pool, port, o.claims[port])) {
				return
			}
		}
	}
}

// RandomPort returns one of the ports that are neither flagged nor claimed, all with
// the same probability, or v1.ErrNoPorts. An empty ip or protocol means any.
func RandomPort(tx *store.Tx, ip, protocol string) (v1.PoolPort, error) {
	pools, err := store.Pools.List(tx)
	if err != nil {
		return v1.PoolPort{}, err
	}
	total := 0
	free := make([]v1.PortSet, len(pools))
	for i, o := range pools {
		if (ip == "" || o.Spec.IP == ip) && (protocol == "" || o.Spec.Protocol == protocol) {
			free[i] = o.Spec.Ports.Without(o.Spec.Flagged).Without(store.Claimed(tx, o.Meta.ID))
			total += free[i].Len()
		}
	}
	if total == 0 {
		return v1.PoolPort{}, v1.ErrNoPorts
	}
	n := rand.IntN(total)
	for i, set := range free {
		if n < set.Len() {
			return entry(pools[i], set.At(n), v1.Claim{}), nil
		}
		n -= set.Len()
	}
	return v1.PoolPort{}, v1.ErrNoPorts // it is not reached
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
