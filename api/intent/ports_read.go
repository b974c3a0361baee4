package intent

import (
	"cmp"
	"errors"
	"math/rand/v2"
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
	Container string // that holds it; empty: none
	Firewall  Rule
}

// Rule is the state of a port's allow rule.
type Rule struct{ State, Reason string }

// entry is how a port of pool o is told.
func entry(o v1.Pool, port int) PortEntry {
	e := PortEntry{IP: o.Spec.IP, Port: port, Protocol: o.Spec.Protocol,
		InUse: o.Spec.Flagged.Has(port), Container: o.Spec.Claims[port]}
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

// GetPort returns a port of the pool, of both protocols the one of tcp, or
// v1.ErrPortNotFound.
func GetPort(tx *store.Tx, r PortRef) (PortEntry, error) {
	for _, id := range r.ids() {
		o, err := store.Pools.Get(tx, id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return PortEntry{}, err
		}
		if err == nil && o.Spec.Ports.Has(r.Port) {
			return entry(o, r.Port), nil
		}
	}
	return PortEntry{}, v1.ErrPortNotFound
}

// Pools returns every part of the pool, by address and protocol.
func Pools(tx *store.Tx) ([]v1.Pool, error) {
	pools, err := store.Pools.List(tx)
	slices.SortFunc(pools, func(a, b v1.Pool) int {
		return cmp.Or(compareIP(a.Spec.IP, b.Spec.IP), cmp.Compare(a.Spec.Protocol, b.Spec.Protocol))
	})
	return pools, err
}

// Entries yields the ports of pools, in order, until yield says false.
func Entries(pools []v1.Pool, yield func(PortEntry) bool) {
	for _, o := range pools {
		for port := range o.Spec.Ports.All() {
			if !yield(entry(o, port)) {
				return
			}
		}
	}
}

// RandomPort picks one of the ports that are neither flagged nor held, each as
// likely as any other, or is v1.ErrNoPorts. An empty ip or protocol means any.
func RandomPort(tx *store.Tx, ip, protocol string) (PortEntry, error) {
	pools, err := store.Pools.List(tx)
	if err != nil {
		return PortEntry{}, err
	}
	pools = slices.DeleteFunc(pools, func(o v1.Pool) bool {
		return ip != "" && o.Spec.IP != ip || protocol != "" && o.Spec.Protocol != protocol
	})
	free := 0
	for _, o := range pools {
		eachFree(o.Spec, func(int) bool { free++; return true })
	}
	if free == 0 {
		return PortEntry{}, v1.ErrNoPorts
	}
	return nthFree(pools, rand.IntN(free)), nil
}

// nthFree is the free port with n free ones before it.
func nthFree(pools []v1.Pool, n int) (found PortEntry) {
	for _, o := range pools {
		eachFree(o.Spec, func(port int) bool {
			if n == 0 {
				found = entry(o, port)
			}
			n--
			return n >= 0
		})
		if n < 0 {
			break
		}
	}
	return found
}

func eachFree(p v1.PoolSpec, yield func(port int) bool) {
	for port := range p.Ports.All() {
		if p.Flagged.Has(port) || p.Claims[port] != "" {
			continue
		}
		if !yield(port) {
			return
		}
	}
}

func sortSkipped(list []Skipped) {
	slices.SortFunc(list, func(a, b Skipped) int {
		return cmp.Or(compareIP(a.IP, b.IP), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol))
	})
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
