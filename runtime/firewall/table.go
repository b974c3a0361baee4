package firewall

import (
	"net/netip"
	"strconv"
	"strings"
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
func rulesOf(want []Rule) []rule {
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

// table is the part of iptables-save's output that one store needs.
type table struct {
	hasChain bool     // the chain exists
	rules    []rule   // of the chain
	jumps    []string // rules of INPUT that jump to the chain, each beginning with INPUT
	others   []string // chains of other stores
}

func (t *iptables) parse(saved string) table {
	var out table
	for line := range strings.Lines(saved) {
		line = strings.TrimSpace(line)
		switch name, _, _ := strings.Cut(strings.TrimPrefix(line, ":"), " "); {
		case line == "", line[0] == '#':
		case line[0] == ':' && name == t.chain:
			out.hasChain = true
		case line[0] == ':' && strings.HasPrefix(name, chainPrefix):
			out.others = append(out.others, name)
		case strings.HasPrefix(line, "-A "+t.chain+" "):
			out.rules = append(out.rules, t.parseRule(strings.TrimPrefix(line, "-A "+t.chain+" ")))
		case strings.HasPrefix(line, "-A INPUT ") && strings.HasSuffix(line, "-j "+t.chain):
			out.jumps = append(out.jumps, strings.TrimPrefix(line, "-A "))
		}
	}
	return out
}

// parseRule parses a rule, whatever the order of its options. A rule with an option
// that berth does not write keeps its text, and so differs from all of berth's.
func (t *iptables) parseRule(text string) rule {
	bare, tagged := strings.CutSuffix(text, t.tag()+" -j ACCEPT")
	words := strings.Fields(bare)
	if !tagged || len(words)%2 != 0 {
		return rule{other: text}
	}
	var r rule
	for i := 0; i < len(words); i += 2 {
		switch value := words[i+1]; words[i] {
		case "-p":
			r.protocol = value
		case "-d":
			prefix, err := netip.ParsePrefix(value)
			if err != nil || !prefix.IsSingleIP() {
				return rule{other: text}
			}
			r.ip = prefix.Addr()
		case "--dport", "--dports":
			r.ports = value
		case "-m":
		default:
			return rule{other: text}
		}
	}
	return r
}
