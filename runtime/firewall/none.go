package firewall

import (
	"context"
	"sync/atomic"
)

// none keeps no rules. Those that an earlier life of this store left behind
// under another backend are taken away, if that can be done.
type none struct {
	left    *iptables
	cleared [2]atomic.Bool // by family
}

// Sync refuses, whatever is wanted.
func (n *none) Sync(ctx context.Context, v6 bool, _ []Rule) (bool, error) {
	family := 0
	if v6 {
		family = 1
	}
	if n.cleared[family].CompareAndSwap(false, true) {
		if _, err := n.left.Sync(ctx, v6, nil); err != nil {
			n.left.log.Debug("left-over firewall rules were not looked for", "err", err)
		}
	}
	return false, &Unavailable{Reason: "firewall.backend is none", off: true}
}
