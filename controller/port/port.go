package port

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/runtime"
	"berth/store"
)

// Firewall applies rules.
type Firewall interface {
	// Sync replaces the rules of one family by want. It reports
	// whether the rules changed. It returns a Refusal if rules cannot be applied on
	// this host; any other error may be temporary.
	Sync(ctx context.Context, f runtime.Family, want []runtime.PortRule) (changed bool, err error)
}

// Refusal is the error of a Firewall that cannot apply rules, or is disabled.
type Refusal interface {
	error
	State() string // v1.FirewallUnavailable or v1.FirewallDisabled
	Retry() bool   // the operator requires a firewall: log the error and retry soon
}

// The keys of the controller: the address families.
const (
	keyV4 = string(runtime.IPv4)
	keyV6 = string(runtime.IPv6)
)

// driftKind is the label value in berth_drift_repaired_total.
const driftKind = "firewall"

// Options configures the controller.
type Options struct {
	Store    *store.Store
	Firewall Firewall
	Resync   time.Duration // period between two syncs without a change
	BackOff  controller.BackOff
	Log      *slog.Logger
	Metrics  *controller.Metrics
}

// New returns the controller of the port pools.
func New(o Options) *controller.Loop {
	o.Metrics.Repaired.WithLabelValues(driftKind)
	return &controller.Loop{
		Name:       "port",
		Reconciler: &reconciler{store: o.Store, firewall: o.Firewall, log: o.Log, metrics: o.Metrics},
		Signals: []controller.Source{controller.Every(o.Resync, func() ([]string, error) {
			return []string{keyV4, keyV6}, nil
		})},
		DesiredState: []controller.Source{desiredState(o.Store)},
		Workers:      1,
		BackOff:      o.BackOff,
		Log:          o.Log,
		Metrics:      o.Metrics,
	}
}

// desiredState returns a source that names both families at the start, because rules
// may exist without a pool, and then the family of each pool that changes.
func desiredState(s *store.Store) controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		notify(keyV4)
		notify(keyV6)
		return store.Pools.Source(s, store.SpecChanged)(ctx, func(id string) { notify(family(id)) })
	}
}

// family returns the key of the pool with this id. The id ends with an IP address.
func family(poolID string) string {
	if strings.Contains(poolID, ":") {
		return keyV6
	}
	return keyV4
}

type reconciler struct {
	store    *store.Store
	firewall Firewall
	log      *slog.Logger
	metrics  *controller.Metrics
}

// Reconcile syncs the rules of one family and records the outcome.
func (r *reconciler) Reconcile(ctx context.Context, key string) (controller.Result, error) {
	pools := r.pools(key)
	want := rulesOf(pools)
	changed, err := r.firewall.Sync(ctx, runtime.Family(key), want)
	if err == nil && changed && len(want) > 0 && allApplied(pools) {
		r.metrics.Repaired.WithLabelValues(driftKind).Inc()
		r.log.Warn("repaired firewall rules that another program had changed", "family", key)
	}
	if recordErr := r.record(pools, outcomeOf(err)); recordErr != nil {
		return controller.Result{}, errors.Join(err, recordErr)
	}
	var refusal Refusal
	if errors.As(err, &refusal) && (!refusal.Retry() || len(want) == 0) {
		return controller.Result{}, nil
	}
	return controller.Result{}, err
}

func (r *reconciler) pools(key string) []v1.Pool {
	return slices.DeleteFunc(store.Pools.List(r.store.Read()), func(p v1.Pool) bool { return family(p.Meta.ID) != key })
}

// allApplied reports whether the status of every pool records a rule for each of its
// ports.
func allApplied(pools []v1.Pool) bool {
	for _, p := range pools {
		if !p.Status.Allowed.Equal(p.Spec.Ports) {
			return false
		}
	}
	return true
}

// rulesOf returns the rules of the pools, sorted, with adjacent ports in one rule.
func rulesOf(pools []v1.Pool) []runtime.PortRule {
	var out []runtime.PortRule
	for _, p := range pools {
		ip, err := netip.ParseAddr(p.Spec.IP)
		if err != nil {
			continue // intent stores addresses only
		}
		out = appendRanges(out, p.Spec.Protocol, ip, p.Spec.Ports)
	}
	slices.SortStableFunc(out, func(a, b runtime.PortRule) int {
		return cmp.Or(a.IP.Compare(b.IP), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.First, b.First))
	})
	return out
}

func appendRanges(out []runtime.PortRule, protocol string, ip netip.Addr, ports v1.PortSet) []runtime.PortRule {
	begun := len(out)
	for p := range ports.All() {
		if n := len(out); n > begun && int(out[n-1].Last)+1 == p {
			out[n-1].Last = uint16(p)
			continue
		}
		out = append(out, runtime.PortRule{Protocol: protocol, IP: ip, First: uint16(p), Last: uint16(p)})
	}
	return out
}
