package firewall

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/runtime"
)

// TestRemove removes the rules of one store of two.
func TestRemove(t *testing.T) {
	host := newSpace(t)
	log := slog.New(slog.DiscardHandler)
	install := func(id string) {
		for _, f := range families {
			_, err := host.sync(newIPTables(id, log), f.family, []runtime.PortRule{allow("tcp", f.any, 80, 80)})
			require.NoError(t, err)
			_, err = host.block(NewEgress(id, nil, nil, log), f.family, runtime.Bridge{Interface: "br-x", Gateways: []netip.Addr{netip.MustParseAddr("172.18.0.1")}})
			require.NoError(t, err)
		}
	}
	remove := func(id string) (changed bool) {
		require.NoError(t, host.do(func() (err error) {
			changed, err = Remove(context.Background(), id, log)
			return err
		}))
		return changed
	}
	install("otherhost")
	before := map[string]string{}
	for _, f := range families {
		before[f.tool] = host.sh(t, f.tool+" -S")
	}
	install("thisone1")
	require.True(t, remove("thisone1"))
	for _, f := range families {
		require.Equal(t, before[f.tool], host.sh(t, f.tool+" -S"))
	}
	require.False(t, remove("thisone1"))
	require.True(t, remove("otherhost"))
	for _, f := range families {
		require.Empty(t, host.berthLines(t, f.tool))
	}
}
