package port

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

// Rule allows what comes in for one address and one range of ports.
type Rule = struct {
	Protocol    string     // tcp or udp
	IP          netip.Addr // the unspecified address stands for every one of its family
	First, Last uint16
}

// Firewall keeps rules in force.
type Firewall interface {
	// Sync makes want the whole set of rules of one family, IPv6 or else IPv4.
	// changed says that something had to be done. An error that is a Refusal
	// says that rules cannot be kept here; any other may be gone at the next try.
	Sync(ctx context.Context, v6 bool, want []Rule) (changed bool, err error)
}

// Refusal is an error of a Firewall that cannot, or shall not, keep rules.
type Refusal interface {
	error
	State() string // v1.FirewallUnavailable or v1.FirewallDisabled
	Retry() bool   // the operator expects it to work: try again soon, and complain
}

// The keys of the controller: the families of addresses.
const (
	keyV4 = "ipv4"
	keyV6 = "ipv6"
)

// driftKind is the value of the label of berth_drift_repaired_total.
const driftKind = "firewall"

// Options are what the controller works with.
type Options struct {
	Store    *store.Store
	Firewall Firewall
	Resync   time.Duration // how often rules are looked at without a reason
	BackOff  func() backoff.BackOff
	Log      *slog.Logger
	Metrics  *controller.Metrics
}

// New is the controller of the port pool.
func New(o Options) *controller.Loop {
	o.Metrics.Kinds(driftKind)
	return &controller.Loop{
		Name:       "port",
		Reconciler: &reconciler{store: o.Store, firewall: o.Firewall, log: o.Log, metrics: o.Metrics},
		Watch: []controller.Source{controller.Every(o.Resync, func() ([]string, error) {
			return []string{keyV4, keyV6}, nil
		})},
		DesiredState: []controller.Source{desiredState(o.Store)},
		Workers:      1,
		BackOff:      o.BackOff,
		Log:          o.Log,
		Metrics:      o.Metrics,
	}
}

// desiredState names both families, and then the family of each pool that changes. At
// the start there may be rules and no pool.
func desiredState(s *store.Store) controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		notify(keyV4)
		notify(keyV6)
		return store.Pools.Source(s, store.SpecChanged)(ctx, func(id string) { notify(family(id)) })
	}
}

// family is the key of a pool's id, which ends with an address.
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

// Reconcile syncs the rules of one family, and notes what came of it.
func (r *reconciler) Reconcile(ctx context.Context, key string) (controller.Result, error) {
	pools, err := r.pools(key)
	if err != nil {
		return controller.Result{}, err
	}
	want := rules(pools)
	changed, err := r.firewall.Sync(ctx, key == keyV6, want)
	if err == nil && changed && len(want) > 0 && settled(pools) {
		r.metrics.Repaired(driftKind)
		r.log.Warn("firewall rules were changed behind berth's back, and put right", "family", key)
	}
	if noteErr := r.record(pools, outcomeOf(err)); noteErr != nil {
		return controller.Result{}, errors.Join(err, noteErr)
	}
	var refusal Refusal
	if errors.As(err, &refusal) && (!refusal.Retry() || len(want) == 0) {
		return controller.Result{}, nil
	}
	return controller.Result{}, err
}

func (r *reconciler) pools(key string) (list []v1.Pool, err error) {
	err = r.store.View(func(tx *store.Tx) error {
		all, err := store.Pools.List(tx)
		for _, p := range all {
			if family(p.Meta.ID) == key {
				list = append(list, p)
			}
		}
		return err
	})
	return list, err
}

// settled says that the rules of every pool were in force, as far as is known.
func settled(pools []v1.Pool) bool {
	for _, p := range pools {
		if !p.Status.Allowed.Equal(p.Spec.Ports) {
			return false
		}
	}
	return true
}
