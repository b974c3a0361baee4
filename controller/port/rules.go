package port

import (
	"cmp"
	"net/netip"
	"slices"

	v1 "berth/api/v1"
)

// rulesOf returns the rules of the pools, sorted, with adjacent ports in one rule.
func rulesOf(pools []v1.Pool) []Rule {
	var out []Rule
	for _, p := range pools {
		ip, err := netip.ParseAddr(p.Spec.IP)
		if err != nil {
			continue // intent stores addresses only
		}
		out = appendRanges(out, p.Spec.Protocol, ip, p.Spec.Ports)
	}
	slices.SortStableFunc(out, func(a, b Rule) int {
		return cmp.Or(a.IP.Compare(b.IP), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.First, b.First))
	})
	return out
}

func appendRanges(out []Rule, protocol string, ip netip.Addr, ports v1.PortSet) []Rule {
	begun := len(out)
	for p := range ports.All() {
		if n := len(out); n > begun && int(out[n-1].Last)+1 == p {
			out[n-1].Last = uint16(p)
			continue
		}
		out = append(out, Rule{Protocol: protocol, IP: ip, First: uint16(p), Last: uint16(p)})
	}
	return out
}
