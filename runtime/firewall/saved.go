package firewall

import (
	"net/netip"
	"strings"
)

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
