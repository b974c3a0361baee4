package firewall

import (
	"context"
	"errors"
	"log/slog"

	"berth/runtime"
)

// Remove removes every rule of a store from the host. changed reports whether there were
// any. Its daemon must not run: it would add them again.
func Remove(ctx context.Context, storeID string, log *slog.Logger) (changed bool, err error) {
	tables, egress := newIPTables(storeID, log), NewEgress(storeID, nil, nil, log)
	for _, v6 := range []bool{false, true} {
		ports, failed := tables.Sync(ctx, v6, nil)
		blocked, alsoFailed := egress.Block(ctx, v6, runtime.Bridge{})
		changed = changed || ports || blocked
		failed = errors.Join(failed, alsoFailed)
		var unavailable *Unavailable
		if v6 && errors.As(failed, &unavailable) { // a host without IPv6 has no rules of it
			continue
		}
		err = errors.Join(err, failed)
	}
	return changed, err
}
