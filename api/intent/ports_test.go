package intent_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

func TestCanonicalIP(t *testing.T) {
	for text, want := range map[string]string{
		"0.0.0.0": "0.0.0.0", "::ffff:10.0.0.1": "10.0.0.1", "2001:DB8:0:0::1": "2001:db8::1", "::": "::",
		"": "", "010.0.0.1": "", "fe80::1%eth0": "", "10.0.0": "", "10.0.0.1 ": "", "localhost": "", "1.2.3.4:5": "",
	} {
		got, ok := intent.CanonicalIP(text)
		require.Equal(t, want, got, text)
		require.Equal(t, want != "", ok, text)
	}
}

func TestParsePort(t *testing.T) {
	for text, want := range map[string]int{"1": 1, "65535": 65535, "0": 0, "65536": 0, "-1": 0, "+1": 0, "01": 0, "": 0, "1x": 0, " 1": 0} {
		got, ok := intent.ParsePort(text)
		require.Equal(t, want != 0, ok, text)
		if ok {
			require.Equal(t, want, got, text)
		}
	}
}

func TestAddPort(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, intent.AddPort(w.store, v1.PortRef{IP: "::ffff:10.0.0.1", Port: 2000, Protocol: "tcp"}))
	e := w.port(2000, "tcp")
	require.Equal(t, "10.0.0.1", e.IP)
	require.False(t, e.InUse)
	require.Equal(t, v1.FirewallPending, e.Firewall.State)
	w.unchanged(func() {
		require.Equal(t, v1.ErrPortExists, intent.AddPort(w.store, v1.PortRef{IP: "10.0.0.1", Port: 2000, Protocol: "tcp"}))
		require.EqualError(t, intent.AddPort(w.store, v1.PortRef{IP: "x", Port: 0, Protocol: "sctp"}),
			"ip: must be an IPv4 or IPv6 address; port: must be between 1 and 65535; protocol: must be tcp or udp")
	})
	require.NoError(t, intent.AddPort(w.store, v1.PortRef{IP: "10.0.0.1", Port: 2000, Protocol: "udp"}), "another identity")
}

func TestAddPortsIsAllOrNothing(t *testing.T) {
	w := newWorld(t)
	add := func(ranges string) (int, error) {
		var f v1.FieldErrors
		wanted := intent.CheckPorts(&f, "10.0.0.1", ranges, "tcp")
		if err := f.Err(); err != nil {
			return 0, err
		}
		return wanted.Ports.Len(), intent.AddPorts(w.store, wanted)
	}
	w.unchanged(func() {
		_, err := add("995-1000")
		require.EqualError(t, err, "Port already exists in pool: 10.0.0.1:1000")
		require.ErrorIs(t, err, &v1.Error{Code: v1.PortExists})
		for _, bad := range []string{"", "1-", "-1", "5-4", "0-5", "1,,2", "65536", "a", "1-2-3", "1 2", "5,4-6"} {
			_, err := add(bad)
			require.ErrorIs(t, err, &v1.Error{Code: v1.InvalidRequest}, bad)
		}
	})
	n, err := add("2000-2009, 3000")
	require.NoError(t, err)
	require.Equal(t, 11, n)
	n, err = add("1-999,1010-1999,2010-2999,3001-65535")
	require.NoError(t, err)
	require.Equal(t, 65535-10-11, n)
}

func TestUseAndDeletePort(t *testing.T) {
	w := newWorld(t)
	w.create("mc", 1001)
	ref := func(port int, protocol string) v1.PortRef {
		return v1.PortRef{IP: "10.0.0.1", Port: port, Protocol: protocol}
	}
	require.NoError(t, intent.MarkPort(w.store, ref(1000, "")))
	require.True(t, w.port(1000, "tcp").InUse)
	require.True(t, w.port(1000, "udp").InUse, "both protocols")
	require.NoError(t, intent.UnmarkPort(w.store, ref(1000, "udp")))
	require.True(t, w.port(1000, "tcp").InUse)
	require.False(t, w.port(1000, "udp").InUse)
	require.NoError(t, intent.UnmarkPort(w.store, ref(1001, "tcp")))
	require.Equal(t, "mc", string(w.port(1001, "tcp").Container), "the claim is beside the flag")
	require.Equal(t, v1.ErrPortNotFound, intent.MarkPort(w.store, ref(5, "")))

	w.unchanged(func() {
		require.EqualError(t, intent.DeletePort(w.store, ref(1001, "")), "Port is already bound by container mc")
		require.Equal(t, v1.ErrPortNotFound, intent.DeletePort(w.store, ref(5, "")))
	})
	require.NoError(t, intent.DeletePort(w.store, ref(1001, "udp")))
	require.NoError(t, intent.DeletePort(w.store, ref(1000, "")))
	require.Equal(t, v1.ErrPortNotFound, intent.DeletePort(w.store, ref(1000, "tcp")))
	require.NoError(t, intent.AddPort(w.store, ref(1000, "tcp")))
	require.False(t, w.port(1000, "tcp").InUse, "a new entry is not in use")
}

func TestDeletePorts(t *testing.T) {
	w := newWorld(t)
	w.create("mc", 1001)
	refs := []v1.PortRef{
		{IP: "10.0.0.1", Port: 1000}, {IP: "10.0.0.1", Port: 1001}, {IP: "10.0.0.1", Port: 1002, Protocol: "udp"},
		{IP: "10.0.0.1", Port: 1002, Protocol: "udp"}, {IP: "10.0.0.1", Port: 1001, Protocol: "tcp"}, {IP: "10.0.0.1", Port: 9}, {IP: "10.9.9.9", Port: 1000},
	}
	deleted, skipped, err := intent.DeletePorts(w.store, refs)
	require.NoError(t, err)
	require.Equal(t, 4, deleted, "1000 of both, 1001 and 1002 of udp")
	require.Equal(t, []v1.ClaimedPort{{PortRef: v1.PortRef{IP: "10.0.0.1", Port: 1001, Protocol: "tcp"}, Container: "mc"}}, skipped)
	var f v1.FieldErrors
	intent.CheckRefs(&f, []v1.PortRef{{IP: "10.0.0.1", Port: 1}, {IP: "x", Port: -1, Protocol: "y"}})
	require.EqualError(t, f.Err(), "ports[1].ip: must be an IPv4 or IPv6 address; ports[1].port: must be between 1 and 65535; ports[1].protocol: must be tcp or udp")
}

func (w *world) random(ip, protocol string) (v1.PoolPort, error) {
	return intent.RandomPort(w.store.Read(), ip, protocol)
}

func TestRandomPortIsUniform(t *testing.T) {
	w := newWorld(t)
	w.create("mc", 1000)
	require.NoError(t, intent.MarkPort(w.store, v1.PortRef{IP: "10.0.0.1", Port: 1001}))
	require.NoError(t, intent.UnmarkPort(w.store, v1.PortRef{IP: "10.0.0.1", Port: 1000, Protocol: "tcp"}))
	counts := map[v1.PoolPort]int{}
	const draws = 17_000
	for range draws {
		e, err := w.random("", "")
		require.NoError(t, err)
		counts[e]++
	}
	require.Len(t, counts, 17, "20 less 1001 of both and the one that is held")
	for e, n := range counts {
		require.InDelta(t, draws/17, n, 200, e)
		require.Empty(t, e.Container)
		require.False(t, e.InUse)
	}
	e, err := w.random("10.0.0.1", "udp")
	require.NoError(t, err)
	require.Equal(t, "udp", e.Protocol)
	_, err = w.random("10.0.0.2", "")
	require.Equal(t, v1.ErrNoPorts, err)
}

func TestEntriesAreInOrder(t *testing.T) {
	w := newWorld(t)
	for _, ip := range []string{"::1", "9.0.0.1", "10.0.0.0"} {
		require.NoError(t, intent.AddPort(w.store, v1.PortRef{IP: ip, Port: 7, Protocol: "udp"}))
	}
	var ips []string
	intent.Entries(intent.Pools(w.store.Read()), v1.PortRef{}, func(e v1.PoolPort) bool {
		if len(ips) == 0 || ips[len(ips)-1] != e.IP {
			ips = append(ips, e.IP)
		}
		return true
	})
	require.Equal(t, []string{"9.0.0.1", "10.0.0.0", "10.0.0.1", "::1"}, ips)
}

func TestFirewallStateOfAnEntry(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.store.Update(func(tx *store.Tx) error {
		return store.Pools.SetStatus(tx, v1.PoolID("10.0.0.1", "tcp"), func(s *v1.PoolStatus) {
			s.Allowed.Add(1000)
			s.State, s.Reason = v1.FirewallUnavailable, "no privileges"
		})
	}))
	require.Equal(t, v1.Rule{State: v1.FirewallApplied}, w.port(1000, "tcp").Firewall)
	require.Equal(t, v1.Rule{State: v1.FirewallUnavailable, Reason: "no privileges"}, w.port(1001, "tcp").Firewall)
	require.Equal(t, v1.FirewallPending, w.port(1000, "udp").Firewall.State)
}

// TestDeletePortsOfManyAddresses: a request of 1 MiB names some 25,000 addresses, and takes little memory for
// each.
func TestDeletePortsOfManyAddresses(t *testing.T) {
	w := newWorld(t)
	refs := make([]v1.PortRef, 25_000)
	for i := range refs {
		refs[i] = v1.PortRef{IP: fmt.Sprintf("10.1.%d.%d", i/250, i%250), Port: 65_535}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	deleted, _, err := intent.DeletePorts(w.store, append(refs, v1.PortRef{IP: "10.0.0.1", Port: 7}))
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Zero(t, deleted)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
}
