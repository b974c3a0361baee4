package firewall

import (
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/runtime"
)

func newEgress(t *testing.T, ports ...int) *Egress {
	t.Helper()
	var providers []netip.Prefix
	for _, network := range []string{"169.254.0.0/16", "100.100.100.200/32", "fe80::/10", "fd00:ec2::254/128"} {
		providers = append(providers, netip.MustParsePrefix(network))
	}
	return NewEgress(storeID, ports, providers, slog.New(slog.DiscardHandler))
}

// bridged is a host with a bridge, whose port v0 leads to a container, and a network v2
// beyond it with a provider's address to which the host forwards.
func bridged(t *testing.T) (host, container, beyond *space, b runtime.Bridge) {
	t.Helper()
	host, container = pair(t)
	beyond = newSpace(t)
	host.sh(t, `
		iptables -P INPUT ACCEPT; ip6tables -P INPUT ACCEPT
		echo 1 > /proc/sys/net/ipv4/ip_forward
		ip addr add 10.98.0.1/32 dev lo
		ip link add v2 type veth peer name v3
		ip link set v3 netns `+itoa(beyond.tid)+`
		ip addr add 169.254.169.1/24 dev v2
		ip link set v2 up
		ip route add 100.100.100.200/32 dev v2`)
	beyond.sh(t, `
		ip addr add 169.254.169.254/24 dev v3
		ip addr add 100.100.100.200/32 dev v3
		ip link set v3 up
		ip route add default via 169.254.169.1`)
	container.sh(t, "ip route add default via 10.99.0.1")
	return host, container, beyond, runtime.Bridge{Interface: "v0", Gateways: []netip.Addr{netip.MustParseAddr("10.99.0.1"), netip.MustParseAddr("fd99::1")}}
}

func TestEgressFilter(t *testing.T) {
	host, container, beyond, b := bridged(t)
	for _, port := range []string{"8070", "7001", "53"} {
		serve(t, host, port)
	}
	for _, port := range []string{"80", "53", "8070"} {
		serve(t, beyond, port)
	}
	serve(t, container, "25565")
	for _, user := range []bool{false, true} {
		if user {
			host.sh(t, "iptables -N DOCKER-USER; iptables -A DOCKER-USER -j RETURN; iptables -I FORWARD -j DOCKER-USER; iptables -A FORWARD -i v0 -j ACCEPT")
		}
		open := func(addr string) bool { return reach(t, container, "tcp", addr) }
		before := host.sh(t, "iptables -S")
		require.True(t, reaches(t, container, "tcp", "10.99.0.1:8070"), "the gateway is open without rules")
		require.True(t, reaches(t, container, "tcp", "169.254.169.254:80"))
		require.True(t, reaches(t, container, "tcp", "100.100.100.200:80"))
		e := newEgress(t, 8070)
		for _, f := range runtime.Families() {
			changed, err := host.block(e, f, b)
			require.NoError(t, err)
			require.True(t, changed)
			changed, err = host.block(e, f, b)
			require.NoError(t, err)
			require.False(t, changed, "nothing is left to do")
		}
		require.False(t, open("10.99.0.1:8070"), "the API by the gateway")
		require.False(t, open("10.99.0.1:7001"), "the gateway")
		require.False(t, open("[fd99::1]:7001"), "the gateway, IPv6")
		require.False(t, open("10.98.0.1:8070"), "the API by another address of the host")
		require.False(t, open("169.254.169.254:80"), "the provider")
		require.False(t, open("100.100.100.200:80"), "a provider with another address")
		require.True(t, reaches(t, container, "tcp", "10.98.0.1:7001"), "a published port, by the host's address")
		require.True(t, reaches(t, container, "tcp", "169.254.169.254:53"), "the provider's DNS")
		require.True(t, reaches(t, container, "udp", "169.254.169.254:53"))
		require.True(t, reaches(t, host, "tcp", "10.99.0.2:25565"), "the host reaches the container")

		changed, err := host.block(e, runtime.IPv4, runtime.Bridge{})
		require.NoError(t, err)
		require.True(t, changed)
		_, err = host.block(e, runtime.IPv6, runtime.Bridge{})
		require.NoError(t, err)
		require.True(t, reaches(t, container, "tcp", "10.99.0.1:8070"), "switched off")
		require.Equal(t, before, host.sh(t, "iptables -S"))
	}
}

func TestEgressRulesAreRepaired(t *testing.T) {
	for _, kind := range []string{"-nft", "-legacy"} {
		host := newSpace(t)
		tool := "iptables" + kind
		host.sh(t, strings.ReplaceAll("TOOL -N DOCKER-USER; TOOL -A DOCKER-USER -j RETURN; TOOL -A FORWARD -j DOCKER-USER; TOOL -N BERTH-EGRESS-another1", "TOOL", tool))
		e := newEgress(t, 8070, 2022)
		e.command = variant(t, kind).command
		b := runtime.Bridge{Interface: "br-0123456789ab", Gateways: []netip.Addr{netip.MustParseAddr("172.18.0.1")}}
		_, err := host.block(e, runtime.IPv4, b)
		require.NoError(t, err)
		good := host.sh(t, tool+"-save -t filter | grep -v '^#'")
		for _, drift := range []string{
			"TOOL -D CHAIN 1", "TOOL -F CHAIN", "TOOL -D DOCKER-USER 1", "TOOL -D INPUT 1",
			"TOOL -I CHAIN -j ACCEPT", "TOOL -A INPUT -j CHAIN", "TOOL -I FORWARD -j CHAIN",
		} {
			host.sh(t, strings.NewReplacer("TOOL", tool, "CHAIN", e.chain).Replace(drift))
			changed, err := host.block(e, runtime.IPv4, b)
			require.NoError(t, err, drift)
			require.True(t, changed, drift)
			require.Equal(t, good, host.sh(t, tool+"-save -t filter | grep -v '^#'"), drift)
		}
		changed, err := host.block(e, runtime.IPv4, runtime.Bridge{Interface: "br-another"})
		require.NoError(t, err)
		require.True(t, changed, "the network was created again")
	}
}
