package firewall

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
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
func (e *Egress) Block(ctx context.Context, v6 bool, b runtime.Bridge) (changed bool, err error) {
	saved, err := e.save(ctx, v6)
	if err != nil {
		return false, err
	}
	have := e.parseEgress(saved)
	var want []string
	if b.Interface != "" {
		want = e.rules(v6, b)
	}
	script := e.egressScript(have, want)
	if script == "" {
		return false, nil
	}
	err = e.restore(ctx, v6, script)
	return err == nil, err
}

// rules returns the rules of the chain as iptables-save prints them.
func (e *Egress) rules(v6 bool, b runtime.Bridge) (lines []string) {
	reject := " -j REJECT --reject-with icmp-port-unreachable"
	if v6 {
		reject = " -j REJECT --reject-with icmp6-port-unreachable"
	}
	in := "-i " + b.Interface
	add := func(match, verdict string) { lines = append(lines, match+e.tag()+verdict) }
	add(in+" -m conntrack --ctstate RELATED,ESTABLISHED", " -j RETURN")
	for _, network := range e.providers {
		if network.Addr().Is6() != v6 {
			continue
		}
		to := network.String()
		add("-d "+to+" "+in+" -p udp -m udp --dport 53", " -j RETURN")
		add("-d "+to+" "+in+" -p tcp -m tcp --dport 53", " -j RETURN")
		add("-d "+to+" "+in, reject)
	}
	for _, gateway := range b.Gateways {
		if gateway.Is6() == v6 {
			add(fmt.Sprintf("-d %s/%d %s", gateway, gateway.BitLen(), in), reject)
		}
	}
	for _, port := range e.ports {
		add(fmt.Sprintf("%s -p tcp -m tcp --dport %d -m addrtype --dst-type LOCAL", in, port), reject)
	}
	return lines
}

// egressTable is the part of iptables-save's output that Egress needs.
type egressTable struct {
	hasChain, hasDockerUser bool // the store's chain exists; Docker's DOCKER-USER exists
	rules                   []string
	jumps                   []string // rules that jump to the chain, each beginning with the name of its chain
}

func (e *Egress) parseEgress(saved string) (have egressTable) {
	for line := range strings.Lines(saved) {
		line = strings.TrimSpace(line)
		rule, isRule := strings.CutPrefix(line, "-A ")
		switch {
		case strings.HasPrefix(line, ":"+e.chain+" "):
			have.hasChain = true
		case strings.HasPrefix(line, ":DOCKER-USER "):
			have.hasDockerUser = true
		case isRule && strings.HasPrefix(rule, e.chain+" "):
			have.rules = append(have.rules, strings.TrimPrefix(rule, e.chain+" "))
		case isRule && strings.HasSuffix(rule, "-j "+e.chain):
			have.jumps = append(have.jumps, rule)
		}
	}
	return have
}

// egressScript returns the iptables-restore input that applies want in one step, or
// an empty string if nothing has to change. DOCKER-USER comes before the rules by
// which Docker accepts packets to other hosts.
func (e *Egress) egressScript(have egressTable, want []string) string {
	var b strings.Builder
	var jumps []string
	if len(want) > 0 {
		jumps = []string{"INPUT" + e.tag() + " -j " + e.chain, "FORWARD" + e.tag() + " -j " + e.chain}
		if have.hasDockerUser {
			jumps[1] = "DOCKER-USER" + e.tag() + " -j " + e.chain
		}
	}
	rewrite := !slices.Equal(have.rules, want) || !have.hasChain && len(want) > 0
	if rewrite {
		b.WriteString(e.emptied())
		for _, line := range want {
			b.WriteString("-A " + e.chain + " " + line + "\n")
		}
	}
	if !slices.Equal(slices.Sorted(slices.Values(have.jumps)), slices.Sorted(slices.Values(jumps))) {
		for _, jump := range have.jumps {
			b.WriteString("-D " + jump + "\n")
		}
		for _, jump := range jumps {
			from, match, _ := strings.Cut(jump, " ")
			b.WriteString("-I " + from + " 1 " + match + "\n")
		}
	}
	if len(want) == 0 && have.hasChain {
		b.WriteString("-X " + e.chain + "\n")
	}
	return transaction(b.String())
}
