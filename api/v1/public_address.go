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

// providerNetworks are the networks in which providers of clouds answer their hosts with
// credentials, and nothing else is served: link-local addresses (AWS, Azure, GCP, Oracle and
// others), 100.100.100.200 (Alibaba), 168.63.129.16 (Azure's WireServer), 192.0.0.192 (Oracle's
// older one), fd00:ec2::254 (AWS), fd20:ce::254 (GCP).
var providerNetworks = prefixes("169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32",
	"fe80::/10", "fd00:ec2::254/128", "fd20:ce::254/128")

// ProviderNetworks returns the networks of the metadata services of clouds.
func ProviderNetworks() []netip.Prefix { return slices.Clone(providerNetworks) }

// IsPublic reports whether an address is one of the public Internet. An IPv4 address in
// IPv6 notation is not.
func IsPublic(a netip.Addr) bool {
	a = a.WithZone("")
	contains := func(p netip.Prefix) bool { return p.Contains(a) }
	return a.IsValid() && !a.Is4In6() && !slices.ContainsFunc(nonPublic, contains) && !slices.ContainsFunc(providerNetworks, contains)
}
