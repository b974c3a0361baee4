package v1

import (
	"net/netip"
	"slices"
)

// nonPublic are the networks that are not on the Internet, or lead to such ones.
var nonPublic = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	"5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8")

func prefixes(list ...string) (networks []netip.Prefix) {
	for _, text := range list {
		networks = append(networks, netip.MustParsePrefix(text))
	}
	return networks
}

// IsPublic reports whether an address is one of the public Internet. An IPv4 address in
// IPv6 notation is not.
func IsPublic(a netip.Addr) bool {
	a = a.WithZone("")
	return a.IsValid() && !a.Is4In6() && !slices.ContainsFunc(nonPublic, func(p netip.Prefix) bool { return p.Contains(a) })
}
