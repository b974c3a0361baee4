package intent

import (
	"net/netip"
	"strconv"
	"strings"

	v1 "berth/api/v1"
)

// CanonicalIP returns the canonical form of an address: an IPv4-mapped address is
// its IPv4 address, IPv6 is compressed. Zones and leading zeros are refused.
func CanonicalIP(text string) (string, bool) {
	ip, err := netip.ParseAddr(text)
	if err != nil || ip.Zone() != "" {
		return "", false
	}
	return ip.Unmap().String(), true
}

func checkIP(f *v1.FieldErrors, field, text string) string {
	ip, ok := CanonicalIP(text)
	if !ok {
		f.Add(field, "must be an IPv4 or IPv6 address")
	}
	return ip
}

func checkPort(f *v1.FieldErrors, field string, port int) {
	if port < 1 || port > 65535 {
		f.Add(field, "must be between 1 and 65535")
	}
}

func checkProtocol(f *v1.FieldErrors, field, protocol string) {
	if protocol != "tcp" && protocol != "udp" {
		f.Add(field, "must be tcp or udp")
	}
}

// parseRanges parses "25565-25600,30000". A port named twice is an error.
func parseRanges(f *v1.FieldErrors, field, text string) v1.PortSet {
	var set v1.PortSet
	for part := range strings.SplitSeq(text, ",") {
		low, high, ok := parseRange(strings.TrimSpace(part))
		if !ok {
			f.Add(field, "must be ports and ranges between 1 and 65535, such as 25565-25600,30000")
			return v1.PortSet{}
		}
		for port := low; port <= high; port++ {
			if set.Has(port) {
				f.Add(field, "names port %d twice", port)
				return v1.PortSet{}
			}
			set.Add(port)
		}
	}
	return set
}

func parseRange(text string) (low, high int, ok bool) {
	first, last, ranged := strings.Cut(text, "-")
	if !ranged {
		last = first
	}
	low, ok1 := ParsePort(strings.TrimSpace(first))
	high, ok2 := ParsePort(strings.TrimSpace(last))
	return low, high, ok1 && ok2 && low <= high
}

// ParsePort parses a port, 1 to 65535, in plain digits without leading zeros.
func ParsePort(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return int(n), err == nil && n > 0 && text[0] != '0' && text[0] != '+'
}
