package firewall

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
)

// Rule allows what comes in for one address and one range of ports. It is an
// alias, so that a package that must not import this one can name the same type.
type Rule = struct {
	Protocol    string     // tcp or udp
	IP          netip.Addr // the unspecified address stands for every one of its family
	First, Last uint16
}

// Backend keeps rules in force.
type Backend interface {
	// Sync makes want the whole set of this backend's rules of one family:
	// IPv6, or else IPv4. The addresses in want must be of that family, and its
	// ranges in order and apart. changed says that something had to be done.
	// Without privileges or tools the error is an *Unavailable; any other error
	// may be gone at the next try.
	Sync(ctx context.Context, v6 bool, want []Rule) (changed bool, err error)
}

// Unavailable says why rules cannot be kept in force here.
type Unavailable struct {
	Reason string
	off    bool // nobody asked for rules
	asked  bool // the operator asked for this very backend
}

// Error is the reason.
func (u *Unavailable) Error() string { return u.Reason }

// State is "disabled" where the operator wants no rules, else "unavailable".
func (u *Unavailable) State() string {
	if u.off {
		return "disabled"
	}
	return "unavailable"
}

// Retry says whether to try again soon, and complain: the operator has asked
// for what does not work. Otherwise the next resync is soon enough.
func (u *Unavailable) Retry() bool { return u.asked }

// New makes the backend of a name: iptables, none, or auto, which is iptables
// that does not complain where it cannot work. storeID sets this daemon's rules
// apart from those of another one on the same host.
func New(name, storeID string, log *slog.Logger) (Backend, error) {
	tables := newIPTables(storeID, log)
	switch name {
	case "iptables":
		tables.asked = true
		return tables, nil
	case "auto":
		return tables, nil
	case "none":
		return &none{left: tables}, nil
	}
	return nil, fmt.Errorf("firewall: no backend is called %q", name)
}
