package firewall

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"unicode"

	"berth/runtime"
)

const chainPrefix = "BERTH-INPUT-"

// iptables keeps the rules in its own chain, to which INPUT jumps. It reads the host's
// rules at each call and caches nothing.
type iptables struct {
	chain   string
	comment string
	asked   bool
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
func (t *iptables) Sync(ctx context.Context, v6 bool, want []runtime.PortRule) (bool, error) {
	saved, err := t.save(ctx, v6)
	if err != nil {
		return false, err
	}
	have := t.parse(saved)
	t.report(tool(v6), have.others)
	script := t.script(have, rulesOf(want))
	if script == "" {
		return false, nil
	}
	err = t.restore(ctx, v6, script)
	return err == nil, err
}

func tool(v6 bool) string {
	if v6 {
		return "ip6tables"
	}
	return "iptables"
}

// save returns the filter table of one family as iptables-save prints it.
func (t *iptables) save(ctx context.Context, v6 bool) (string, error) {
	saved, err := t.command(ctx, tool(v6)+"-save", "", "-t", "filter")
	if err != nil {
		return "", t.classify(err)
	}
	if strings.Contains(saved, "is incompatible") { // printed with exit code 0
		return "", &Unavailable{Reason: tool(v6) + " cannot read the filter table: another tool (iptables-nft or iptables-legacy) created it", asked: t.asked}
	}
	return saved, nil
}

// restore applies script in one step.
func (t *iptables) restore(ctx context.Context, v6 bool, script string) error {
	_, err := t.command(ctx, tool(v6)+"-restore", script, "--noflush", "--wait", "5")
	if err != nil {
		return t.classify(err)
	}
	return nil
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

// script returns the iptables-restore input that applies want in one step, or an empty
// string if nothing has to change.
func (t *iptables) script(have table, want []rule) string {
	if len(want) == 0 {
		return t.removal(have)
	}
	var b strings.Builder
	if !have.hasChain || !slices.Equal(have.rules, want) {
		b.WriteString(t.emptied())
		for _, r := range want {
			b.WriteString("-A " + t.chain + r.spec() + t.tag() + " -j ACCEPT\n")
		}
	}
	if jump := "INPUT" + t.tag() + " -j " + t.chain; !slices.Equal(have.jumps, []string{jump}) {
		b.WriteString(t.withoutJumps(have) + "-I INPUT 1" + strings.TrimPrefix(jump, "INPUT") + "\n")
	}
	return transaction(b.String())
}

// removal returns the script that removes the chain and the jumps to it.
func (t *iptables) removal(have table) string {
	if !have.hasChain {
		return ""
	}
	return transaction(t.emptied() + t.withoutJumps(have) + "-X " + t.chain + "\n")
}

// emptied returns the line that creates the chain, or empties it.
func (t *iptables) emptied() string { return ":" + t.chain + " - [0:0]\n" }

func (t *iptables) withoutJumps(have table) string {
	var b strings.Builder
	for _, jump := range have.jumps {
		b.WriteString("-D " + jump + "\n")
	}
	return b.String()
}

func (t *iptables) tag() string { return ` -m comment --comment "` + t.comment + `"` }

func transaction(changes string) string {
	if changes == "" {
		return ""
	}
	return "*filter\n" + changes + "COMMIT\n"
}
