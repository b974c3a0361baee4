package v1

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIsPublic(t *testing.T) {
	for address, public := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "100.63.255.255": true, "100.128.0.0": true, "172.32.0.1": true, "2001:4860:4860::8888": true, "2a00::1": true, "223.255.255.255": true,
		"0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "100.64.0.1": false, "100.127.255.255": false, "127.0.0.1": false, "127.255.255.255": false,
		"169.254.169.254": false, "100.100.100.200": false, "168.63.129.16": false, "168.63.129.17": true, "192.0.0.192": false, "fd20:ce::254": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false, "192.0.0.1": false, "192.0.2.1": false, "198.18.0.1": false,
		"198.51.100.1": false, "203.0.113.1": false, "224.0.0.1": false, "239.1.2.3": false, "240.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "::8.8.8.8": false, "::ffff:8.8.8.8": false, "::ffff:10.0.0.1": false, "64:ff9b::808:808": false, "64:ff9b:1::1": false,
		"2001:db8::1": false, "2001::1": false, "2002:a00:1::": false, "fc00::1": false, "fd12::1": false, "fe80::1": false, "fe80::1%eth0": false, "ff02::1": false, "100::1": false, "3fff::1": false,
	} {
		require.Equal(t, public, IsPublic(netip.MustParseAddr(address)), address)
	}
	require.False(t, IsPublic(netip.Addr{}))
}
