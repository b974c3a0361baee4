package firewall

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	berthruntime "berth/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const storeID = "ABCD1234-5678"

func backend(t *testing.T, name string) Backend {
	t.Helper()
	b, err := New(name, storeID, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return b
}

func allow(protocol, ip string, first, last int) berthruntime.PortRule {
	return berthruntime.PortRule{Protocol: protocol, IP: netip.MustParseAddr(ip), First: uint16(first), Last: uint16(last)}
}

// families are the addresses of the host that pair creates.
var families = []struct {
	name, tool, ip, any, host string
	family                    berthruntime.Family
}{
	{name: "v4", tool: "iptables", ip: "10.99.0.1", any: "0.0.0.0", host: "10.99.0.1", family: berthruntime.IPv4},
	{name: "v6", tool: "ip6tables", ip: "fd99::1", any: "::", host: "[fd99::1]", family: berthruntime.IPv6},
}

func TestPacketsFollowRules(t *testing.T) {
	host, client := pair(t)
	serve(t, host, "7001")
	serve(t, host, "7002")
	b := backend(t, "iptables")
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			sync := func(want ...berthruntime.PortRule) bool {
				changed, err := host.sync(b, f.family, want)
				require.NoError(t, err)
				return changed
			}
			open := func() (ports string) {
				for _, network := range []string{"tcp", "udp"} {
					for _, port := range []string{"7001", "7002"} {
						if reach(t, client, network, f.host+":"+port) {
							ports += " " + network + port
						}
					}
				}
				return ports
			}
			// On a busy machine a reply may come too late: retry once.
			is := func(want, why string) {
				t.Helper()
				got := open()
				for range 5 {
					if got == want {
						break
					}
					got = open()
				}
				require.Equal(t, want, got, why)
			}
			is("", "the policy drops")
			rules := []berthruntime.PortRule{allow("tcp", f.any, 7001, 7001), allow("udp", f.ip, 7000, 7002)}
			require.True(t, sync(rules...))
			is(" tcp7001 udp7001 udp7002", "as the rules say")
			require.False(t, sync(rules...), "nothing is left to do")

			host.sh(t, f.tool+" -F")
			is("", "a flush closes")
			require.True(t, sync(rules...), "and is repaired")
			is(" tcp7001 udp7001 udp7002", "as before")

			require.True(t, sync(rules[0]))
			is(" tcp7001", "one rule is removed alone")
			require.True(t, sync())
			is("", "the last rule is gone")
			require.Empty(t, host.berthLines(t, f.tool), "the chain is removed with the last rule")
			require.False(t, sync())
		})
	}
}

func TestRuleMatchesItsAddress(t *testing.T) {
	host, client := pair(t)
	serve(t, host, "7001")
	_, err := host.sync(backend(t, "auto"), berthruntime.IPv4, []berthruntime.PortRule{allow("tcp", "10.99.0.3", 7001, 7001)})
	require.NoError(t, err)
	reached := false
	for range 5 {
		reached = reached || reach(t, client, "tcp", "10.99.0.3:7001")
	}
	require.True(t, reached)
	require.False(t, reach(t, client, "tcp", "10.99.0.1:7001"))
}

// drifts are changes by others to the chain CHAIN with the tool TOOL.
var drifts = []string{
	"TOOL -D CHAIN 1",
	"TOOL -F CHAIN",
	"TOOL -F INPUT",
	"TOOL -F; TOOL -X",
	"TOOL -I CHAIN -j ACCEPT",
	"TOOL -A CHAIN -p tcp --dport 22 -j ACCEPT",
	"TOOL -R CHAIN 1 -p tcp --dport 80 -j ACCEPT",
	"TOOL -R CHAIN 1 -p tcp -s 1.2.3.4 --dport 80 -m comment --comment 'berth ABCD1234' -j ACCEPT",
	"TOOL -R CHAIN 2 -p udp --dport 90:99 -m comment --comment 'berth ABCD1234' -j DROP",
	"TOOL -A INPUT -j CHAIN",
	"TOOL -R INPUT 1 -p tcp -j CHAIN",
}

// variant is a backend that uses the tools of one kind.
func variant(t *testing.T, kind string) *iptables {
	t.Helper()
	tables := newIPTables(storeID, slog.New(slog.DiscardHandler))
	tables.command = func(ctx context.Context, name, input string, args ...string) (string, error) {
		family, verb, _ := strings.Cut(name, "-")
		return run(ctx, family+kind+"-"+verb, input, args...)
	}
	return tables
}

func TestDriftIsRepaired(t *testing.T) {
	want := []berthruntime.PortRule{allow("tcp", "10.0.0.1", 80, 80), allow("udp", "0.0.0.0", 90, 99), allow("udp", "0.0.0.0", 200, 200)}
	for _, kind := range []string{"-nft", "-legacy"} {
		host := newSpace(t)
		tool := "iptables" + kind
		host.sh(t, strings.ReplaceAll(`
			TOOL -A INPUT -p tcp --dport 22 -j ACCEPT
			TOOL -N OTHER
			TOOL -N BERTH-INPUT-another1
			TOOL -A BERTH-INPUT-another1 -p tcp --dport 1 -j ACCEPT
			TOOL -A OTHER -p tcp --dport 7 -j DROP`, "TOOL", tool))
		others := host.sh(t, tool+"-save -t filter | grep -v '^#'")
		b := variant(t, kind)
		_, err := host.sync(b, berthruntime.IPv4, want)
		require.NoError(t, err)
		good := host.sh(t, tool+"-save -t filter | grep -v '^#'")
		for _, drift := range drifts {
			host.sh(t, strings.NewReplacer("TOOL", tool, "CHAIN", b.chain).Replace(drift))
			if strings.Contains(drift, " -F;") || strings.HasSuffix(drift, "-F INPUT") {
				host.sh(t, tool+"-restore <<EOF\n"+good+"EOF\n"+tool+" -F "+b.chain) // restore the rules of others
			}
			changed, err := host.sync(b, berthruntime.IPv4, want)
			require.NoError(t, err, drift)
			require.True(t, changed, drift)
			require.Equal(t, good, host.sh(t, tool+"-save -t filter | grep -v '^#'"), drift)
			changed, err = host.sync(b, berthruntime.IPv4, want)
			require.NoError(t, err)
			require.False(t, changed, "%s: repaired for good", drift)
		}
		_, err = host.sync(b, berthruntime.IPv4, nil)
		require.NoError(t, err)
		require.Equal(t, others, host.sh(t, tool+"-save -t filter | grep -v '^#'"))
	}
}

func TestSyncWholePool(t *testing.T) {
	host := newSpace(t)
	b := backend(t, "iptables")
	for name, step := range map[string]int{"131,070 ports in two ranges": 1, "65,536 scattered ports": 2} {
		var want []berthruntime.PortRule
		for _, protocol := range []string{"tcp", "udp"} {
			for port := 1; step == 2 && port <= 65535; port += 2 {
				want = append(want, allow(protocol, "0.0.0.0", port, port))
			}
			if step == 1 {
				want = append(want, allow(protocol, "0.0.0.0", 1, 65535))
			}
		}
		began := time.Now()
		changed, err := host.sync(b, berthruntime.IPv4, want)
		require.NoError(t, err)
		require.True(t, changed)
		wrote := time.Since(began)
		changed, err = host.sync(b, berthruntime.IPv4, want)
		require.NoError(t, err)
		require.False(t, changed)
		t.Logf("%s: written in %v, compared in %v", name, wrote, time.Since(began)-wrote)
		require.Less(t, wrote, 20*time.Second)
	}
}

func TestFailedSyncChangesNothing(t *testing.T) {
	host := newSpace(t)
	b := backend(t, "iptables")
	_, err := host.sync(b, berthruntime.IPv4, []berthruntime.PortRule{allow("tcp", "0.0.0.0", 80, 80)})
	require.NoError(t, err)
	before := host.berthLines(t, "iptables")
	changed, err := host.sync(b, berthruntime.IPv4, []berthruntime.PortRule{allow("tcp", "0.0.0.0", 81, 81), allow("nonsense", "0.0.0.0", 80, 80)})
	require.Error(t, err)
	require.False(t, changed)
	var unavailable *Unavailable
	require.False(t, errors.As(err, &unavailable), "worth another try: %v", err)
	require.Equal(t, before, host.berthLines(t, "iptables"))
}

func TestSyncUnprivileged(t *testing.T) {
	for name, retry := range map[string]bool{"iptables": true, "auto": false} {
		host := newSpace(t)
		require.NoError(t, host.do(func() error {
			// Only for this thread and the tools that it starts.
			if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534); errno != 0 {
				return errno
			}
			return nil
		}))
		for _, f := range families {
			_, err := host.sync(backend(t, name), f.family, []berthruntime.PortRule{allow("tcp", f.any, 80, 80)})
			var unavailable *Unavailable
			require.ErrorAs(t, err, &unavailable)
			require.Equal(t, "unavailable", unavailable.State())
			require.Contains(t, unavailable.Reason, "Permission denied")
			require.Equal(t, retry, unavailable.Retry())
		}
	}
}

func TestSyncWithoutTools(t *testing.T) {
	b := variant(t, "-none")
	_, err := b.Sync(t.Context(), berthruntime.IPv6, nil)
	var unavailable *Unavailable
	require.ErrorAs(t, err, &unavailable)
	require.Equal(t, "ip6tables-none-save is not installed", unavailable.Reason)
}

func TestNoneRemovesLeftovers(t *testing.T) {
	host := newSpace(t)
	for _, f := range families {
		_, err := host.sync(backend(t, "iptables"), f.family, []berthruntime.PortRule{allow("tcp", f.any, 80, 80)})
		require.NoError(t, err)
	}
	b := backend(t, "none")
	for _, f := range families {
		changed, err := host.sync(b, f.family, []berthruntime.PortRule{allow("tcp", f.any, 80, 80)})
		var unavailable *Unavailable
		require.ErrorAs(t, err, &unavailable)
		require.Equal(t, "disabled", unavailable.State())
		require.False(t, unavailable.Retry())
		require.False(t, changed)
		require.Empty(t, host.berthLines(t, f.tool))
	}
}

func TestUnknownBackend(t *testing.T) {
	_, err := New("ufw", storeID, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "ufw")
}

func TestToolEnvironmentAndContext(t *testing.T) {
	t.Setenv("BERTH_AUTHORIZATION_TOKEN", "berth_secret")
	out, err := run(t.Context(), "env", "")
	require.NoError(t, err)
	require.NotContains(t, out, "BERTH")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = run(ctx, "sleep", "", "60")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestRulesArePacked(t *testing.T) {
	var want []berthruntime.PortRule
	for port := 1; port <= 31; port += 2 {
		want = append(want, allow("tcp", "::", port, port))
	}
	want = append(want, allow("udp", "::", 40, 50), allow("udp", "::", 60, 60), allow("udp", "::1", 60, 60))
	for port := 10; port <= 80; port += 10 {
		want = append(want, allow("udp", "::2", port, port+1))
	}
	const tag = ` -m comment --comment "berth ABCD1234" -j ACCEPT`
	require.Equal(t, []string{
		"-p tcp -m multiport --dports 1,3,5,7,9,11,13,15,17,19,21,23,25,27,29" + tag,
		"-p tcp -m tcp --dport 31" + tag,
		"-p udp -m multiport --dports 40:50,60" + tag,
		"-d ::1/128 -p udp -m udp --dport 60" + tag,
		"-d ::2/128 -p udp -m multiport --dports 10:11,20:21,30:31,40:41,50:51,60:61,70:71" + tag,
		"-d ::2/128 -p udp -m udp --dport 80:81" + tag,
	}, newIPTables(storeID, slog.New(slog.DiscardHandler)).accepting(want))
}

func TestNamespacesAreIsolated(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var mine, its unix.Stat_t
	require.NoError(t, unix.Stat("/proc/thread-self/ns/net", &mine))
	s := newSpace(t)
	require.NoError(t, s.do(func() error { return unix.Stat("/proc/thread-self/ns/net", &its) }))
	require.NotEqual(t, mine.Ino, its.Ino)
}
