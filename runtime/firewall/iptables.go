package firewall

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"berth/runtime"
)

const chainPrefix = "BERTH-INPUT-"

// iptables keeps the rules in its own chain, to which INPUT jumps. It reads the host's
// rules at each call and caches nothing.
type iptables struct {
	chain   string
	comment string
	asked   bool // the configuration names this backend
	off     bool // the configuration disables rules
	command func(ctx context.Context, name, input string, args ...string) (string, error)
	log     *slog.Logger

	mu      sync.Mutex
	unknown map[string]bool // chains of other stores that were logged
}

func newIPTables(storeID string, log *slog.Logger) *iptables {
	id := strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return r
	}, storeID)
	id = id[:min(8, len(id))]
	return &iptables{
		chain: chainPrefix + id, comment: "berth " + id,
		command: run, log: log, unknown: map[string]bool{},
	}
}

// Sync reads the filter table and changes it in one step if it differs from want.
func (t *iptables) Sync(ctx context.Context, f runtime.Family, want []runtime.PortRule) (bool, error) {
	if t.off { // rules of an earlier configuration are removed
		if _, err := t.apply(ctx, f, nil, "INPUT"); err != nil {
			t.log.Debug("could not check for firewall rules of an earlier configuration", "err", err)
		}
		return false, &Unavailable{Reason: "firewall.backend is none", off: true}
	}
	return t.apply(ctx, f, t.accepting(want), "INPUT")
}

// apply makes rules the rules of the chain, and lets the chains from jump to it; without
// rules it removes the chain. It does so in one step, and not if nothing has to change.
func (t *iptables) apply(ctx context.Context, f runtime.Family, rules []string, from ...string) (changed bool, err error) {
	saved, err := t.save(ctx, f)
	if err != nil {
		return false, err
	}
	have := t.parse(saved)
	t.report(tool(f), have.others)
	script := t.script(have, rules, from)
	if script == "" {
		return false, nil
	}
	_, err = t.command(ctx, tool(f)+"-restore", script, "--noflush", "--wait", "5")
	if err != nil {
		return false, t.classify(err)
	}
	return true, nil
}

func tool(f runtime.Family) string {
	if f == runtime.IPv6 {
		return "ip6tables"
	}
	return "iptables"
}

// save returns the filter table of one family as iptables-save prints it.
func (t *iptables) save(ctx context.Context, f runtime.Family) (string, error) {
	saved, err := t.command(ctx, tool(f)+"-save", "", "-t", "filter")
	if err != nil {
		return "", t.classify(err)
	}
	if strings.Contains(saved, "is incompatible") { // printed with exit code 0
		return "", &Unavailable{Reason: tool(f) + " cannot read the filter table: another tool (iptables-nft or iptables-legacy) created it",
			asked: t.asked}
	}
	return saved, nil
}

// report logs each chain of another store once.
func (t *iptables) report(tool string, others []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, chain := range others {
		if key := tool + " " + chain; !t.unknown[key] {
			t.unknown[key] = true
			t.log.Info("chain of another store is not touched", "tool", tool, "chain", chain)
		}
	}
}

// table is the part of iptables-save's output that a chain needs.
type table struct {
	hasChain, hasDockerUser bool     // the chain exists; Docker's DOCKER-USER exists
	rules                   []string // of the chain
	jumps                   []string // rules that jump to the chain, each beginning with the name of its chain
	others                  []string // chains of other stores
}

func (t *iptables) parse(saved string) (have table) {
	for line := range strings.Lines(saved) {
		line = strings.TrimSpace(line)
		if name, declared := strings.CutPrefix(line, ":"); declared {
			name, _, _ = strings.Cut(name, " ")
			have.hasChain = have.hasChain || name == t.chain
			have.hasDockerUser = have.hasDockerUser || name == "DOCKER-USER"
			if strings.HasPrefix(name, chainPrefix) && strings.HasPrefix(t.chain, chainPrefix) && name != t.chain {
				have.others = append(have.others, name)
			}
			continue
		}
		rule, isRule := strings.CutPrefix(line, "-A ")
		own, isOwn := strings.CutPrefix(rule, t.chain+" ")
		switch {
		case isRule && isOwn:
			have.rules = append(have.rules, own)
		case isRule && strings.HasSuffix(rule, "-j "+t.chain):
			have.jumps = append(have.jumps, rule)
		}
	}
	return have
}

// script returns the iptables-restore input that applies want in one step, or an empty
// string if nothing has to change. FORWARD stands for DOCKER-USER where that exists: it
// comes before the rules by which Docker accepts packets to other hosts.
func (t *iptables) script(have table, want, from []string) string {
	var b strings.Builder
	var jumps []string
	for _, chain := range from {
		if chain == "FORWARD" && have.hasDockerUser {
			chain = "DOCKER-USER"
		}
		if len(want) > 0 {
			jumps = append(jumps, chain+t.tag()+" -j "+t.chain)
		}
	}
	if !slices.Equal(have.rules, want) || !have.hasChain && len(want) > 0 {
		b.WriteString(":" + t.chain + " - [0:0]\n") // creates the chain, or empties it
		for _, rule := range want {
			b.WriteString("-A " + t.chain + " " + rule + "\n")
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
		b.WriteString("-X " + t.chain + "\n")
	}
	if b.Len() == 0 {
		return ""
	}
	return "*filter\n" + b.String() + "COMMIT\n"
}

func (t *iptables) tag() string { return ` -m comment --comment "` + t.comment + `"` }

// multiportSlots is how many ports one multiport match holds; a range counts as two.
const multiportSlots = 15

// accepting returns the rules that accept packets to ports, as iptables-save prints them. It
// joins ranges that differ only in their ports to rules of up to fifteen ports: 131,070
// scattered ports become 4,370 rules.
func (t *iptables) accepting(want []runtime.PortRule) (rules []string) {
	for len(want) > 0 {
		first, ports, free := want[0], "", multiportSlots
		for len(want) > 0 && want[0].IP == first.IP && want[0].Protocol == first.Protocol {
			text, slots := strconv.Itoa(int(want[0].First)), 1
			if want[0].Last > want[0].First {
				text, slots = text+":"+strconv.Itoa(int(want[0].Last)), 2
			}
			if slots > free {
				break
			}
			ports, free, want = ports+","+text, free-slots, want[1:]
		}
		match := ""
		if !first.IP.IsUnspecified() {
			match = fmt.Sprintf("-d %s/%d ", first.IP, first.IP.BitLen())
		}
		match += "-p " + first.Protocol
		if ports = ports[1:]; strings.Contains(ports, ",") {
			match += " -m multiport --dports " + ports
		} else {
			match += " -m " + first.Protocol + " --dport " + ports
		}
		rules = append(rules, match+t.tag()+" -j ACCEPT")
	}
	return rules
}

const (
	commandTime = 15 * time.Second
	maxStderr   = 2048 // bytes
)

// systemPath lists the directories of the tools, independent of the daemon's PATH.
const systemPath = "/usr/sbin:/sbin:/usr/local/sbin:/usr/bin:/bin"

// run runs a tool with a deadline and returns its standard output. The tool does not
// inherit the daemon's environment, which may contain tokens.
func run(ctx context.Context, name, input string, args ...string) (string, error) {
	path, err := find(name)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = []string{"PATH=" + systemPath, "LC_ALL=C"}
	cmd.Stdin = strings.NewReader(input)
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		text := string(stderr.Bytes()[:min(stderr.Len(), maxStderr)])
		return "", fmt.Errorf("%s: %s: %w", name, strings.Join(strings.Fields(text), " "), cmp.Or(ctx.Err(), err))
	}
	return stdout.String(), nil
}

func find(name string) (string, error) {
	for _, dir := range filepath.SplitList(systemPath) {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}

// classify returns an *Unavailable for an error that a retry does not fix, which the
// tools' messages show, and any other error unchanged.
func (t *iptables) classify(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		tool, _, _ := strings.Cut(err.Error(), ":")
		return &Unavailable{Reason: tool + " is not installed", asked: t.asked}
	}
	for _, text := range []string{
		"Permission denied", "Operation not permitted", "must be root",
		"is incompatible", "able does not exist", "Protocol not supported", "not supported by protocol",
	} {
		if strings.Contains(err.Error(), text) {
			return &Unavailable{Reason: err.Error(), asked: t.asked}
		}
	}
	return err
}
