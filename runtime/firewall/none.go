package firewall

import (
	"context"
	"sync/atomic"

	"berth/runtime"
)

// none keeps no rules. It removes those that this store left under another backend, if
// it can.
type none struct {
	leftover *iptables
	cleared  [2]atomic.Bool // by family
}

// Sync returns an *Unavailable.
func (n *none) Sync(ctx context.Context, v6 bool, _ []runtime.PortRule) (bool, error) {
	family := 0
	if v6 {
		family = 1
	}
	if n.cleared[family].CompareAndSwap(false, true) {
		if _, err := n.leftover.Sync(ctx, v6, nil); err != nil {
			n.leftover.log.Debug("could not check for firewall rules of an earlier configuration", "err", err)
		}
	}
	return false, &Unavailable{Reason: "firewall.backend is none", off: true}
}
