package firewall

import (
	"context"
	"strings"
)

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
