package firewall

import (
	"net/netip"
	"strconv"
	"strings"
)

// multiportSlots is how many ports one multiport match holds; a range takes two.
const multiportSlots = 15

// rule is one line of the chain, in a form that can be compared.
type rule struct {
	protocol string
	ip       netip.Addr // invalid: any
	ports    string     // "80" or "80:90" or several with commas
	other    string     // what berth would not have written
}

// spec is the rule's match as iptables-restore reads it.
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

// rulesOf packs ranges that differ in nothing but the ports into one line each
// fifteen ports. It keeps 131,070 scattered entries at 4,370 lines.
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

// table is what matters to one store in the output of iptables-save.
type table struct {
	chain  bool     // it is there
	rules  []rule   // of the chain
	jumps  []string // rules of INPUT that lead to the chain, from the word INPUT on
	others []string // chains of other stores
}

func (t *iptables) parse(saved string) table {
	var out table
	for line := range strings.Lines(saved) {
		line = strings.TrimSpace(line)
		switch name, _, _ := strings.Cut(strings.TrimPrefix(line, ":"), " "); {
		case line == "", line[0] == '#':
		case line[0] == ':' && name == t.chain:
			out.chain = true
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

// parseRule reads a rule however its words are ordered. One with a word that
// berth does not write is kept as a whole, and so differs from every other.
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
