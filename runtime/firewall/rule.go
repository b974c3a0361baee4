package firewall

import (
	"net/netip"
	"strconv"
	"strings"

	"berth/runtime"
)

// multiportSlots is how many ports one multiport match holds; a range counts as two.
const multiportSlots = 15

// rule is one rule of the chain in a form that can be compared.
type rule struct {
	protocol string
	ip       netip.Addr // the zero Addr matches any address
	ports    string     // "80", "80:90", or several separated by commas
	other    string     // text of a rule that berth did not write
}

// spec returns the rule's match in the syntax of iptables-restore.
func (r rule) spec() string {
	var b strings.Builder
	if r.ip.IsValid() {
		b.WriteString(" -d " + r.ip.String())
	}
	b.WriteString(" -p " + r.protocol)
	if strings.Contains(r.ports, ",") {
		return b.String() + " -m multiport --dports " + r.ports
	}
	return b.String() + " -m " + r.protocol + " --dport " + r.ports
}

// rulesOf joins ranges that differ only in their ports to rules of up to fifteen
// ports. 131,070 scattered ports become 4,370 rules.
func rulesOf(want []runtime.PortRule) []rule {
	var out []rule
	free := 0
	for _, w := range want {
		r := rule{protocol: w.Protocol, ports: strconv.Itoa(int(w.First))}
		if !w.IP.IsUnspecified() {
			r.ip = w.IP
		}
		slots := 1
		if w.Last > w.First {
			r.ports += ":" + strconv.Itoa(int(w.Last))
			slots = 2
		}
		last := len(out) - 1
		if last >= 0 && out[last].ip == r.ip && out[last].protocol == r.protocol && free >= slots {
			out[last].ports += "," + r.ports
			free -= slots
			continue
		}
		out = append(out, r)
		free = multiportSlots - slots
	}
	return out
}
