package firewall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"berth/runtime"
)

// Backend keeps rules in force.
type Backend interface {
	// Sync makes want the complete set of this backend's rules of one family. The
	// addresses in want must be of that family, and the ranges sorted and disjoint. changed reports whether the host's rules changed.
	// Without privileges or tools the error is an *Unavailable; a retry may fix any
	// other error.
	Sync(ctx context.Context, f runtime.Family, want []runtime.PortRule) (changed bool, err error)
}

// Unavailable reports why rules cannot be kept in force on this host.
type Unavailable struct {
	Reason string
	off    bool // rules are disabled in the configuration
	asked  bool // the configuration names this backend
}

// Error returns the reason.
func (u *Unavailable) Error() string { return u.Reason }

// State returns "disabled" if rules are disabled in the configuration, else
// "unavailable".
func (u *Unavailable) State() string {
	if u.off {
		return "disabled"
	}
	return "unavailable"
}

// Retry reports whether to retry soon and to log an error, because the configuration
// names a backend that does not work. Otherwise the next resync is soon enough.
func (u *Unavailable) Retry() bool { return u.asked }

// New returns the backend called name: iptables, none, or auto, which is iptables
// without errors where it cannot work. none keeps no rules, and removes those of this
// store, if it can. storeID separates this daemon's rules from
// those of other daemons on the host.
func New(name, storeID string, log *slog.Logger) (Backend, error) {
	tables := newIPTables(storeID, log)
	switch name {
	case "iptables":
		tables.asked = true
		return tables, nil
	case "auto":
		return tables, nil
	case "none":
		tables.off = true
		return tables, nil
	}
	return nil, fmt.Errorf("firewall: unknown backend %q: use auto, iptables or none", name)
}

// Remove removes every rule of a store from the host. changed reports whether there were
// any. Its daemon must not run: it would add them again.
func Remove(ctx context.Context, storeID string, log *slog.Logger) (changed bool, err error) {
	tables, egress := newIPTables(storeID, log), NewEgress(storeID, nil, nil, log)
	for _, f := range runtime.Families() {
		ports, failed := tables.Sync(ctx, f, nil)
		blocked, alsoFailed := egress.Block(ctx, f, runtime.Bridge{})
		changed = changed || ports || blocked
		failed = errors.Join(failed, alsoFailed)
		var unavailable *Unavailable
		if f == runtime.IPv6 && errors.As(failed, &unavailable) { // a host without IPv6 has no rules of it
			continue
		}
		err = errors.Join(err, failed)
	}
	return changed, err
}

// Probe returns the version of iptables with its backend, such as
// "iptables v1.8.9 (nf_tables)", if it can read the host's rules. It changes none.
func Probe(ctx context.Context) (string, error) {
	version, err := run(ctx, "iptables", "", "--version")
	if err != nil {
		return "", err
	}
	for _, name := range []string{"iptables-save", "iptables-restore"} {
		if _, err := find(name); err != nil {
			return "", err
		}
	}
	if _, err := run(ctx, "iptables-save", "", "-t", "filter"); err != nil {
		return "", err
	}
	return strings.TrimSpace(version), nil
}

// HasChain reports whether a table of iptables has a chain.
func HasChain(ctx context.Context, table, chain string) (bool, error) {
	saved, err := run(ctx, "iptables-save", "", "-t", table)
	return strings.Contains(saved, "\n:"+chain+" "), err
}
