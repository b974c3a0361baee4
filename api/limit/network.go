package limit

import "net/netip"

// Network returns what an address is counted by: an IPv4 address itself, or the /64 of an
// IPv6 address, which providers assign to one customer.
func Network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	prefix, _ := ip.WithZone("").Prefix(64) // 64 bits are in every IPv6 address
	return prefix.String()
}
