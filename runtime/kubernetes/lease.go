package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth/runtime"
)

// The times of the Lease with which a berth holds its store's pods. Whoever finds that of another unchanged for
// leaseTime takes it, and the holder does nothing more once it has not renewed it for leaseLate.
const (
	leaseTime  = 30 * time.Second
	leaseLate  = 20 * time.Second
	leaseRenew = 8 * time.Second

	releaseLimit = 2 * time.Second // of the end of this process
)

// lease keeps two berths with copies of one store from acting on its pods. No clock of another machine is
// compared: a holder is gone if its Lease has not changed for leaseTime by the clock of this process.
type lease struct {
	turn    chan struct{} // has a token while somebody renews it, who alone uses version and since
	version string        // of the Lease of another, as seen last
	since   time.Time     // when that version was seen first

	mu      sync.Mutex // guards the rest
	renewed time.Time  // when this process began to renew it last; zero: it does not hold it
	denied  bool       // the permissions are those of an older berth: nothing is held
}

// held reports whether this process may act.
func (l *lease) held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.denied || !l.renewed.IsZero() && time.Since(l.renewed) < leaseLate
}

// set records when the renewal began; zero: it is another's.
func (l *lease) set(began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = began
}

func (l *lease) deny() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.denied = true
}

// leaseObject is what the engine needs of a Lease of coordination.k8s.io/v1.
type leaseObject struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`
	Spec            leaseSpec `json:"spec"`
}

type leaseSpec struct {
	Holder   string         `json:"holderIdentity"`
	Duration int            `json:"leaseDurationSeconds"`
	Renewed  meta.MicroTime `json:"renewTime"`
}

// hold returns nil while this process may act on the pods of its store. It renews the Lease if that is late:
// keepLease does so in time, while Watch runs.
func (e *Engine) hold(ctx context.Context) error {
	if e.cfg.Holder == "" || e.lease.held() {
		return nil
	}
	select {
	case e.lease.turn <- struct{}{}:
		defer func() { <-e.lease.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if e.lease.held() { // somebody else has renewed it meanwhile
		return nil
	}
	return e.renewLease(ctx)
}

// keepLease renews the Lease until ctx ends.
func (e *Engine) keepLease(ctx context.Context) {
	tick := time.NewTicker(leaseRenew)
	defer tick.Stop()
	for e.cfg.Holder != "" {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		select {
		case e.lease.turn <- struct{}{}:
		default: // it is being renewed
			continue
		}
		limited, cancel := context.WithTimeout(ctx, quick)
		if err := e.renewLease(limited); err != nil {
			e.log.Debug("the lease of the store was not renewed", "err", err)
		}
		cancel()
		<-e.lease.turn
	}
}

// renewLease creates, renews or takes the Lease. The caller has the turn.
func (e *Engine) renewLease(ctx context.Context) error {
	l, began := &e.lease, time.Now()
	object, err := e.getLease(ctx)
	other := ""
	switch {
	case apierrors.IsNotFound(err):
		object = &leaseObject{ObjectMeta: meta.ObjectMeta{Name: e.leaseName(), Labels: map[string]string{labelStore: hash(e.cfg.StoreID)}}}
	case err == nil && object.Spec.Holder != e.cfg.Holder:
		other = object.Spec.Holder
	}
	if other != "" {
		if l.version != object.ResourceVersion {
			l.version, l.since = object.ResourceVersion, began
		}
		if l.set(time.Time{}); time.Since(l.since) < leaseTime {
			return fmt.Errorf("%w: %s acts on the pods of this store: end one of the two, or give this one a store of its own",
				runtime.ErrUnavailable, other)
		}
		e.log.Warn("the lease of the store is taken: its holder has not renewed it", "holder", other)
	}
	if err == nil || apierrors.IsNotFound(err) {
		object.Spec = leaseSpec{e.cfg.Holder, int(leaseTime.Seconds()), meta.NowMicro()}
		err = e.putLease(ctx, object)
	}
	switch {
	case err == nil:
		l.set(began)
	case apierrors.IsForbidden(err):
		l.deny()
		e.log.Warn("another berth with a copy of this store would not be noticed: its Role lacks the leases of "+
			"hack/deploy/kubernetes/role.yaml", "err", err)
		return nil
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err): // another was faster
		return fmt.Errorf("%w: the lease of the store: %w", runtime.ErrUnavailable, err)
	}
	return err
}

// releaseLease lets another process take the Lease at once.
func (e *Engine) releaseLease(ctx context.Context) {
	if e.cfg.Holder == "" || !e.lease.held() {
		return
	}
	e.lease.set(time.Time{})
	if object, err := e.getLease(ctx); err == nil && object.Spec.Holder == e.cfg.Holder {
		object.Spec.Holder = ""
		_ = e.putLease(ctx, object) // otherwise it is free after leaseTime
	}
}

func (e *Engine) leaseName() string { return "berth-" + hash(e.cfg.StoreID)[:8] }

func (e *Engine) leasePath() string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + e.cfg.Namespace + "/leases"
}

func (e *Engine) getLease(ctx context.Context) (*leaseObject, error) {
	text, err := e.api().Get().AbsPath(e.leasePath(), e.leaseName()).SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	object := &leaseObject{}
	return object, json.Unmarshal(text, object)
}

// putLease creates a Lease, or replaces the version that was read.
func (e *Engine) putLease(ctx context.Context, object *leaseObject) error {
	object.TypeMeta = meta.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	request := e.api().Post().AbsPath(e.leasePath())
	if object.ResourceVersion != "" {
		request = e.api().Put().AbsPath(e.leasePath(), e.leaseName())
	}
	return request.SetHeader("Accept", "application/json").SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
}
