package main

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/controller/port"
	"berth/runtime/firewall"
	"berth/store"
)

// inNamespace runs the test again in a network namespace of its own. It reports
// whether this is that run.
func inNamespace(t *testing.T) bool {
	t.Helper()
	const mark = "BERTH_TEST_IN_NAMESPACE"
	if os.Getenv(mark) != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir = os.TempDir()
	cmd.Env = append(os.Environ(), mark+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: "+t.Name())
	return false
}

// pool is a store with the port controller on a real firewall.
type pool struct {
	*testing.T
	store *store.Store
}

func newPool(t *testing.T, backend string) pool {
	t.Helper()
	s, err := store.Open("", store.Options{})
	require.NoError(t, err)
	log := slog.New(slog.DiscardHandler)
	rules, err := firewall.New(backend, s.ID(), log)
	require.NoError(t, err)
	loop := port.New(port.Options{Store: s, Firewall: rules, Resync: 100 * time.Millisecond,
		BackOff: controller.BackOff{Initial: 10 * time.Millisecond, Max: time.Second}, Metrics: controller.NewMetrics(prometheus.NewRegistry()), Log: log})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); loop.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done; require.NoError(t, s.Close()) })
	return pool{t, s}
}

// set replaces the ports of an address in the pool.
func (p pool) set(ip, protocol string, ports ...int) {
	p.Helper()
	var set v1.PortSet
	for _, n := range ports {
		set.Add(n)
	}
	id := v1.PoolID(ip, protocol)
	require.NoError(p, p.store.Update(func(tx *store.Tx) error {
		if _, err := store.Pools.Get(tx, id); err == nil {
			return store.Pools.SetSpec(tx, id, func(s *v1.PoolSpec) error { s.Ports = set; return nil })
		}
		return store.Pools.Create(tx, id, v1.PoolSpec{IP: ip, Protocol: protocol, Ports: set})
	}))
}

// becomes waits for the state of a pool, and returns its status.
func (p pool) becomes(ip, protocol, state string) v1.PoolStatus {
	p.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	o, err := store.Pools.Await(ctx, p.store, v1.PoolID(ip, protocol), func(o v1.Pool) bool { return o.Status.State == state })
	require.NoError(p, err, "%+v", o.Status)
	return o.Status
}

// shows waits until the output of iptables contains text, or does not.
func (p pool) shows(tool, text string, want bool) {
	p.Helper()
	require.Eventually(p, func() bool {
		out, err := exec.Command(tool, "-S").Output()
		return err == nil && strings.Contains(string(out), text) == want
	}, time.Minute, 10*time.Millisecond, "%s: %s", tool, text)
}

func TestPoolFirewall(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	p := newPool(t, "iptables")
	p.set("0.0.0.0", "tcp", 80, 81, 90)
	p.set("fd00::1", "udp", 53)
	require.Equal(t, 3, p.becomes("0.0.0.0", "tcp", v1.FirewallApplied).Allowed.Len())
	p.becomes("fd00::1", "udp", v1.FirewallApplied)
	p.shows("iptables", "-p tcp -m multiport --dports 80:81,90 ", true)
	p.shows("ip6tables", "-d fd00::1/128 -p udp -m udp --dport 53 ", true)
	for _, tool := range []string{"iptables", "ip6tables"} {
		require.NoError(t, exec.Command(tool, "-F").Run())
	}
	p.shows("iptables", "--dports 80:81,90 ", true)
	p.shows("ip6tables", "--dport 53 ", true)
	p.set("0.0.0.0", "tcp", 90)
	p.shows("iptables", "--dports", false)
	p.set("0.0.0.0", "tcp")
	p.shows("iptables", "BERTH", false)
	p.shows("ip6tables", "BERTH", true)
}

func TestPoolWithoutPrivileges(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	require.NoError(t, syscall.Setuid(65534), "this process is the test's own")
	for _, backend := range []string{"auto", "iptables"} {
		p := newPool(t, backend)
		p.set("0.0.0.0", "tcp", 80)
		require.Contains(t, p.becomes("0.0.0.0", "tcp", v1.FirewallUnavailable).Reason, "Permission denied")
	}
	p := newPool(t, "none")
	p.set("0.0.0.0", "tcp", 80)
	require.Equal(t, "firewall.backend is none", p.becomes("0.0.0.0", "tcp", v1.FirewallDisabled).Reason)
}
