package intent

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"

	v1 "berth/api/v1"
	"berth/store"
)

// PortKey returns "ip/port/protocol", which ParsePortKey parses.
func PortKey(r v1.PortRef) string { return fmt.Sprintf("%s/%d/%s", r.IP, r.Port, r.Protocol) }

// ParsePortKey parses the result of PortKey.
func ParsePortKey(text string) (r v1.PortRef, ok bool) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return r, false
	}
	ip, isIP := CanonicalIP(parts[0])
	port, isPort := ParsePort(parts[1])
	return v1.PortRef{IP: ip, Port: port, Protocol: parts[2]}, isIP && isPort && (parts[2] == "tcp" || parts[2] == "udp")
}

// poolsOf returns the ids of the pools that a reference may mean.
func poolsOf(r v1.PortRef) []string {
	if r.Protocol != "" {
		return []string{v1.PoolID(r.IP, r.Protocol)}
	}
	return []string{v1.PoolID(r.IP, "tcp"), v1.PoolID(r.IP, "udp")}
}

// CheckPort adds the errors of a complete reference to f, and makes its address
// canonical.
func CheckPort(f *v1.FieldErrors, r *v1.PortRef) {
	ip := checkIP(f, "ip", r.IP)
	checkPort(f, "port", r.Port)
	checkProtocol(f, "protocol", r.Protocol)
	r.IP = ip
}

// AddPort adds one port to the pool, or returns v1.ErrPortExists.
func AddPort(s store.Writer, r v1.PortRef) error {
	var f v1.FieldErrors
	CheckPort(&f, &r)
	if err := f.Err(); err != nil {
		return err
	}
	var set v1.PortSet
	set.Add(r.Port)
	return s.Update(func(tx *store.Tx) error { return addPorts(tx, r.IP, r.Protocol, set) })
}

// CheckPorts parses ranges such as "25565-25600,30000" of an address into the
// argument of AddPorts, and adds their errors to f.
func CheckPorts(f *v1.FieldErrors, ip, ranges, protocol string) v1.PoolSpec {
	ip = checkIP(f, "ip", ip)
	set := parseRanges(f, "ports", ranges)
	checkProtocol(f, "protocol", protocol)
	return v1.PoolSpec{IP: ip, Protocol: protocol, Ports: set}
}

// AddPorts adds all ports, which passed CheckPorts, to the pool. If one of them is in
// it, none is added: v1.ErrPortExists.
func AddPorts(s store.Writer, p v1.PoolSpec) error {
	return s.Update(func(tx *store.Tx) error {
		return addPorts(tx, p.IP, p.Protocol, p.Ports)
	})
}

func addPorts(tx *store.Tx, ip, protocol string, set v1.PortSet) error {
	id := v1.PoolID(ip, protocol)
	err := store.Pools.SetSpec(tx, id, func(p *v1.PoolSpec) error {
		for port := range set.All() {
			switch {
			case p.Ports.Has(port) && set.Len() > 1:
				return v1.Errorf(v1.PortExists, "%s: %s", v1.ErrPortExists, netip.AddrPortFrom(netip.MustParseAddr(ip), uint16(port)))
			case p.Ports.Has(port):
				return v1.ErrPortExists
			}
			p.Ports.Add(port)
		}
		return nil
	})
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return store.Pools.Create(tx, id, v1.PoolSpec{IP: ip, Protocol: protocol, Ports: set})
}

// MarkPort sets the in_use flag of every port that r means, or returns v1.ErrPortNotFound.
func MarkPort(s store.Writer, r v1.PortRef) error { return flagPort(s, r, true) }

// UnmarkPort clears the in_use flag of every port that r means, or returns v1.ErrPortNotFound.
func UnmarkPort(s store.Writer, r v1.PortRef) error { return flagPort(s, r, false) }

func flagPort(s store.Writer, r v1.PortRef, inUse bool) error {
	return eachPool(s, r, func(tx *store.Tx, pool v1.Pool, held v1.Claim) error {
		if held.Container != "" {
			held.InUse = inUse
			return store.SetClaim(tx, pool.Meta.ID, r.Port, held)
		}
		return store.Pools.SetSpec(tx, pool.Meta.ID, func(p *v1.PoolSpec) error {
			if inUse {
				p.Flagged.Add(r.Port)
			} else {
				p.Flagged.Remove(r.Port)
			}
			return nil
		})
	})
}

// DeletePort removes every port that r means from the pool, or none if a container
// has claimed one. Its refusals are v1.ErrPortNotFound and the code PortBound.
func DeletePort(s store.Writer, r v1.PortRef) error {
	return eachPool(s, r, func(tx *store.Tx, pool v1.Pool, held v1.Claim) error {
		if held.Container != "" {
			return errPortBound(held.Container)
		}
		return store.Pools.SetSpec(tx, pool.Meta.ID, func(p *v1.PoolSpec) error {
			p.Ports.Remove(r.Port)
			p.Flagged.Remove(r.Port)
			return nil
		})
	})
}

// eachPool calls change, in one transaction, with each pool that has the port
// of r, and with the claim of that port.
func eachPool(s store.Writer, r v1.PortRef, change func(*store.Tx, v1.Pool, v1.Claim) error) error {
	return s.Update(func(tx *store.Tx) error {
		found := false
		for _, id := range poolsOf(r) {
			pool, err := store.Pools.Get(tx, id)
			if errors.Is(err, store.ErrNotFound) || err == nil && !pool.Spec.Ports.Has(r.Port) {
				continue
			}
			if err != nil {
				return err
			}
			held, err := store.GetClaim(tx, id, r.Port)
			if err != nil {
				return err
			}
			found = true
			if err := change(tx, pool, held); err != nil {
				return err
			}
		}
		if !found {
			return v1.ErrPortNotFound
		}
		return nil
	})
}

// CheckRefs adds the errors of references to f, and makes their addresses canonical.
// A protocol may be empty.
func CheckRefs(f *v1.FieldErrors, refs []v1.PortRef) {
	for i := range refs {
		r := &refs[i]
		at := fmt.Sprintf("ports[%d].", i)
		r.IP = checkIP(f, at+"ip", r.IP)
		checkPort(f, at+"port", r.Port)
		if r.Protocol != "" {
			checkProtocol(f, at+"protocol", r.Protocol)
		}
	}
}

// DeletePorts removes ports, which passed CheckRefs, from the pool. It ignores ports
// that are not in the pool, and skips those that a container has claimed.
func DeletePorts(s store.Writer, refs []v1.PortRef) (deleted int, skipped []v1.ClaimedPort, err error) {
	byPool := map[string][]int{} // no PortSet: a request may name many addresses, with a port each
	for _, r := range refs {
		for _, id := range poolsOf(r) {
			byPool[id] = append(byPool[id], r.Port)
		}
	}
	err = s.Update(func(tx *store.Tx) error {
		for id, ports := range byPool {
			n, held, err := removePorts(tx, id, ports)
			if err != nil {
				return err
			}
			deleted += n
			skipped = append(skipped, held...)
		}
		return nil
	})
	if err != nil {
		return 0, nil, err
	}
	sortSkipped(skipped)
	return deleted, skipped, nil
}

// removePorts removes ports from one pool, if it exists.
func removePorts(tx *store.Tx, pool string, ports []int) (deleted int, held []v1.ClaimedPort, err error) {
	err = store.Pools.SetSpec(tx, pool, func(p *v1.PoolSpec) error {
		slices.Sort(ports)
		for _, port := range slices.Compact(ports) {
			c, err := store.GetClaim(tx, pool, port)
			switch {
			case err != nil:
				return err
			case c.Container != "":
				held = append(held, v1.ClaimedPort{PortRef: v1.PortRef{IP: p.IP, Port: port, Protocol: p.Protocol}, Container: c.Container})
			case p.Ports.Has(port):
				p.Ports.Remove(port)
				p.Flagged.Remove(port)
				deleted++
			}
		}
		return nil
	})
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return deleted, held, err
}

func sortSkipped(list []v1.ClaimedPort) {
	slices.SortFunc(list, func(a, b v1.ClaimedPort) int {
		return cmp.Or(compareIP(a.IP, b.IP), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol))
	})
}

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
func Pools(tx *store.Tx) []Pool {
	list := store.Pools.List(tx)
	slices.SortFunc(list, func(a, b v1.Pool) int { return comparePool(a.Spec, b.Spec.IP, b.Spec.Protocol) })
	pools := make([]Pool, 0, len(list))
	for _, o := range list {
		pools = append(pools, Pool{o, maps.Collect(store.Claims(tx, o.Meta.ID, 0))})
	}
	return pools
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
	pools := store.Pools.List(tx)
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
