package firewall

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"

	"berth/runtime"
)

const egressPrefix = "BERTH-EGRESS-"

// Egress blocks traffic from the containers of a bridge to the services of the cloud's
// provider, to the bridge's gateway and to ports of the host. Replies to the host pass, and
// so does DNS to the provider, which some serve at the same addresses. Egress reads the host's rules at each call.
type Egress struct {
	*iptables
	ports     []int          // TCP ports of this host that containers must not reach
	providers []netip.Prefix // where providers serve the host's credentials
}

// NewEgress returns the Egress of a store. ports are the daemon's own TCP ports, and providers
// the networks of the metadata services of clouds, IPv4 and IPv6.
func NewEgress(storeID string, ports []int, providers []netip.Prefix, log *slog.Logger) *Egress {
	t := newIPTables(storeID, log)
	t.chain = egressPrefix + strings.TrimPrefix(t.chain, chainPrefix)
	return &Egress{iptables: t, ports: ports, providers: providers}
}

// Block puts the rules for a bridge in force, or removes them if the bridge has no
// interface. changed reports whether the host's rules changed. Without privileges or
// tools the error is an *Unavailable.
func (e *Egress) Block(ctx context.Context, f runtime.Family, b runtime.Bridge) (changed bool, err error) {
	var rules []string
	if b.Interface != "" {
		rules = e.rules(f, b)
	}
	return e.apply(ctx, f, rules, "INPUT", "FORWARD")
}

// rules returns the rules of the chain as iptables-save prints them.
func (e *Egress) rules(f runtime.Family, b runtime.Bridge) (lines []string) {
	reject := " -j REJECT --reject-with icmp-port-unreachable"
	if f == runtime.IPv6 {
		reject = " -j REJECT --reject-with icmp6-port-unreachable"
	}
	in := "-i " + b.Interface
	add := func(match, verdict string) { lines = append(lines, match+e.tag()+verdict) }
	add(in+" -m conntrack --ctstate RELATED,ESTABLISHED", " -j RETURN")
	for _, network := range e.providers {
		if !f.Has(network.Addr()) {
			continue
		}
		to := network.String()
		add("-d "+to+" "+in+" -p udp -m udp --dport 53", " -j RETURN")
		add("-d "+to+" "+in+" -p tcp -m tcp --dport 53", " -j RETURN")
		add("-d "+to+" "+in, reject)
	}
	for _, gateway := range b.Gateways {
		if f.Has(gateway) {
			add(fmt.Sprintf("-d %s/%d %s", gateway, gateway.BitLen(), in), reject)
		}
	}
	for _, port := range e.ports {
		add(fmt.Sprintf("%s -p tcp -m tcp --dport %d -m addrtype --dst-type LOCAL", in, port), reject)
	}
	return lines
}
