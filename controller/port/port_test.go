package port

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/runtime"
	"berth/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeFirewall is a Firewall in memory that a test can flush, or cause to fail.
type fakeFirewall struct {
	mu    sync.Mutex
	rules map[runtime.Family][]runtime.PortRule
	err   error
	syncs int
	hook  func() // runs in the middle of a Sync
}

func (f *fakeFirewall) Sync(_ context.Context, family runtime.Family, want []runtime.PortRule) (bool, error) {
	if f.hook != nil {
		f.hook()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.syncs++
	if f.err != nil {
		return false, f.err
	}
	changed := !cmp.Equal(f.rules[family], want, cmp.Comparer(func(a, b runtime.PortRule) bool { return a == b }))
	f.rules[family] = want
	return changed, nil
}

func (f *fakeFirewall) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fakeFirewall) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, r := range append(append([]runtime.PortRule{}, f.rules[runtime.IPv4]...), f.rules[runtime.IPv6]...) {
		out = append(out, fmt.Sprintf("%s/%s:%d-%d", r.Protocol, r.IP, r.First, r.Last))
	}
	return strings.Join(out, " ")
}

// refusal is an error like those of package firewall.
type refusal struct {
	state string
	retry bool
}

func (r refusal) Error() string { return "because" }
func (r refusal) State() string { return r.state }
func (r refusal) Retry() bool   { return r.retry }

// world is a running controller.
type world struct {
	*testing.T
	store    *store.Store
	firewall *fakeFirewall
	r        *reconciler
	reg      *prometheus.Registry
	log      *lockedBuilder
}

type lockedBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuilder) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuilder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s, err := store.Open("", store.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	w := &world{T: t, store: s, firewall: &fakeFirewall{rules: map[runtime.Family][]runtime.PortRule{}}, reg: prometheus.NewRegistry(), log: &lockedBuilder{}}
	w.r = w.loop().Reconciler.(*reconciler)
	return w
}

func (w *world) loop() *controller.Loop {
	if w.r != nil {
		w.reg = prometheus.NewRegistry()
	}
	return New(Options{Store: w.store, Firewall: w.firewall, Resync: 10 * time.Millisecond,
		BackOff: controller.BackOff{Initial: time.Millisecond, Max: 10 * time.Millisecond},
		Log:     slog.New(slog.NewTextHandler(w.log, nil)), Metrics: controller.NewMetrics(w.reg)})
}

// set creates or changes a pool, as package intent does.
func (w *world) set(ip, protocol string, ports ...int) string {
	w.Helper()
	var set v1.PortSet
	for _, p := range ports {
		set.Add(p)
	}
	id := v1.PoolID(ip, protocol)
	require.NoError(w, w.store.Update(func(tx *store.Tx) error {
		if _, err := store.Pools.Get(tx, id); err == nil {
			return store.Pools.SetSpec(tx, id, func(s *v1.PoolSpec) error { s.Ports = set; return nil })
		}
		return store.Pools.Create(tx, id, v1.PoolSpec{IP: ip, Protocol: protocol, Ports: set})
	}))
	return id
}

func (w *world) get(id string) (v1.Pool, error) { return store.Pools.Get(w.store.Read(), id) }

func (w *world) status(id string) (ports int, state, reason string) {
	w.Helper()
	p, err := w.get(id)
	require.NoError(w, err)
	return p.Status.Allowed.Len(), p.Status.State, p.Status.Reason
}

func (w *world) reconcile(key string) error {
	_, err := w.r.Reconcile(w.Context(), key)
	return err
}

func (w *world) repaired() float64 {
	return gathered(w.T, w.reg, "berth_drift_repaired_total", "firewall")
}

func gathered(t *testing.T, g prometheus.Gatherer, name, label string) float64 {
	t.Helper()
	families, err := g.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && m.GetLabel()[0].GetValue() == label {
				return m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("no metric %s %s", name, label)
	return 0
}

func TestFamilyIsSyncedAsOneSet(t *testing.T) {
	w := newWorld(t)
	tcp := w.set("0.0.0.0", "tcp", 1, 2, 3, 65535)
	udp := w.set("10.0.0.1", "udp", 7)
	six := w.set("fd00::1", "tcp", 80)
	require.NoError(t, w.reconcile(keyV4))
	require.Equal(t, "tcp/0.0.0.0:1-3 tcp/0.0.0.0:65535-65535 udp/10.0.0.1:7-7", w.firewall.text())
	n, state, reason := w.status(tcp)
	require.Equal(t, []any{4, v1.FirewallApplied, ""}, []any{n, state, reason})
	n, state, _ = w.status(udp)
	require.Equal(t, []any{1, v1.FirewallApplied}, []any{n, state})
	_, state, _ = w.status(six)
	require.Empty(t, state, "the other family was not synced")
	require.NoError(t, w.reconcile(keyV6))
	require.Contains(t, w.firewall.text(), "tcp/fd00::1:80-80")
	require.Zero(t, w.repaired())
}

func TestEmptyPoolIsPurgedAfterItsRules(t *testing.T) {
	w := newWorld(t)
	id := w.set("::", "udp", 9)
	require.NoError(t, w.reconcile(keyV6))
	w.set("::", "udp")
	w.firewall.fail(errors.New("busy"))
	require.Error(t, w.reconcile(keyV6))
	_, err := w.get(id)
	require.NoError(t, err, "kept while its rule may be applied")
	w.firewall.fail(nil)
	require.NoError(t, w.reconcile(keyV6))
	_, err = w.get(id)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.Empty(t, w.firewall.text())
}

func TestRulesOfRemovedPoolAreNoDrift(t *testing.T) {
	w := newWorld(t)
	w.firewall.rules[runtime.IPv4] = []runtime.PortRule{{Protocol: "tcp", IP: netip.MustParseAddr("0.0.0.0"), First: 1, Last: 1}}
	require.NoError(t, w.reconcile(keyV4))
	require.Empty(t, w.firewall.text())
	require.Zero(t, w.repaired(), "berth stopped between the removal and its sync")
}

func TestPoolChangedDuringSyncIsNotPurged(t *testing.T) {
	w := newWorld(t)
	id := w.set("0.0.0.0", "tcp")
	w.firewall.hook = func() { w.set("0.0.0.0", "tcp", 5) }
	require.NoError(t, w.reconcile(keyV4))
	n, _, _ := w.status(id)
	require.Zero(t, n, "its rule is not applied yet")
	w.firewall.hook = func() { w.set("0.0.0.0", "tcp") }
	require.NoError(t, w.reconcile(keyV4))
	n, _, _ = w.status(id)
	require.Equal(t, 1, n, "kept while its rule is applied")
	w.firewall.hook = nil
	require.NoError(t, w.reconcile(keyV4))
	_, err := w.get(id)
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestDriftIsCounted(t *testing.T) {
	w := newWorld(t)
	w.set("0.0.0.0", "tcp", 1)
	require.NoError(t, w.reconcile(keyV4))
	require.NoError(t, w.reconcile(keyV4))
	require.Zero(t, w.repaired())
	w.firewall.rules = map[runtime.Family][]runtime.PortRule{}
	require.NoError(t, w.reconcile(keyV4))
	require.Equal(t, 1.0, w.repaired())
	w.set("0.0.0.0", "tcp", 1, 2)
	require.NoError(t, w.reconcile(keyV4))
	w.set("0.0.0.0", "tcp")
	require.NoError(t, w.reconcile(keyV4))
	require.Equal(t, 1.0, w.repaired())
}

func TestRefusalIsRecorded(t *testing.T) {
	for _, row := range []refusal{
		{v1.FirewallDisabled, false}, {v1.FirewallUnavailable, false}, {v1.FirewallUnavailable, true},
	} {
		w := newWorld(t)
		id := w.set("0.0.0.0", "tcp", 1)
		require.NoError(t, w.reconcile(keyV4))
		w.firewall.fail(fmt.Errorf("sync: %w", row))
		for range 3 {
			require.Equal(t, row.retry, w.reconcile(keyV4) != nil)
		}
		n, state, reason := w.status(id)
		require.Equal(t, []any{0, row.state, "because"}, []any{n, state, reason})
		require.Equal(t, 1, strings.Count(w.log.String(), "not applied"), "logged once")
		level := map[bool]string{true: "level=INFO", false: "level=WARN"}[row.state == v1.FirewallDisabled]
		require.Contains(t, w.log.String(), level+` msg="firewall rules for the port pool are not applied"`)
		w.set("0.0.0.0", "tcp")
		require.NoError(t, w.reconcile(keyV4), "without rules there is nothing to refuse")
		_, err := w.get(id)
		require.ErrorIs(t, err, store.ErrNotFound)
	}
}

func TestTemporaryErrorKeepsAllowed(t *testing.T) {
	w := newWorld(t)
	id := w.set("0.0.0.0", "tcp", 1)
	require.NoError(t, w.reconcile(keyV4))
	w.firewall.fail(errors.New("locked"))
	require.ErrorContains(t, w.reconcile(keyV4), "locked")
	n, state, reason := w.status(id)
	require.Equal(t, []any{1, v1.FirewallPending, "locked"}, []any{n, state, reason})
}

func TestLoopFollowsPoolsAndRepairsDrift(t *testing.T) {
	w := newWorld(t)
	w.firewall.rules[runtime.IPv6] = []runtime.PortRule{{Protocol: "tcp", IP: netip.MustParseAddr("::"), First: 1, Last: 1}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.loop().Run(ctx) }()
	defer func() { cancel(); <-done }()
	eventually := func(text string) {
		t.Helper()
		require.Eventually(t, func() bool { return w.firewall.text() == text }, time.Minute, time.Millisecond, text)
	}
	eventually("") // the entry was deleted while the daemon was down
	w.set("fd00::1", "udp", 53)
	eventually("udp/fd00::1:53-53")
	w.set("10.0.0.1", "tcp", 53)
	eventually("tcp/10.0.0.1:53-53 udp/fd00::1:53-53")
	id := v1.PoolID("10.0.0.1", "tcp")
	require.Eventually(t, func() bool { n, _, _ := w.status(id); return n == 1 }, time.Minute, time.Millisecond)
	w.firewall.mu.Lock()
	w.firewall.rules = map[runtime.Family][]runtime.PortRule{}
	w.firewall.mu.Unlock()
	eventually("tcp/10.0.0.1:53-53 udp/fd00::1:53-53")
	w.set("10.0.0.1", "tcp")
	eventually("udp/fd00::1:53-53")
	require.Eventually(t, func() bool { _, err := w.get(id); return errors.Is(err, store.ErrNotFound) }, time.Minute, time.Millisecond)
}

func TestPoolsAreRecordedInChunks(t *testing.T) {
	w := newWorld(t)
	for i := range 200 {
		w.set(fmt.Sprintf("10.0.%d.1", i), "tcp", 1, 65535)
	}
	require.NoError(t, w.reconcile(keyV4))
	n, state, _ := w.status(v1.PoolID("10.0.199.1", "tcp"))
	require.Equal(t, []any{2, v1.FirewallApplied}, []any{n, state})
}

func TestPortsAreCounted(t *testing.T) {
	w := newWorld(t)
	id := w.set("0.0.0.0", "tcp", 1, 2, 3)
	require.NoError(t, w.store.Update(func(tx *store.Tx) error {
		return store.Pools.SetSpec(tx, id, func(s *v1.PoolSpec) error { s.Flagged.Add(2); return nil })
	}))
	require.NoError(t, testutil.CollectAndCompare(NewCollector(w.store), strings.NewReader(`
# HELP berth_ports Ports in the pools, by the flag in_use.
# TYPE berth_ports gauge
berth_ports{in_use="false"} 2
berth_ports{in_use="true"} 1
`)))
}

func TestFullPoolIsTwoRules(t *testing.T) {
	var all v1.PortSet
	for p := 1; p <= 65535; p++ {
		all.Add(p)
	}
	got := rulesOf([]v1.Pool{
		{Spec: v1.PoolSpec{IP: "0.0.0.0", Protocol: "udp", Ports: all}},
		{Spec: v1.PoolSpec{IP: "0.0.0.0", Protocol: "tcp", Ports: all}},
		{Spec: v1.PoolSpec{IP: "nonsense", Protocol: "tcp", Ports: all}},
	})
	any4 := netip.IPv4Unspecified()
	require.Equal(t, []runtime.PortRule{{Protocol: "tcp", IP: any4, First: 1, Last: 65535}, {Protocol: "udp", IP: any4, First: 1, Last: 65535}}, got)
}
