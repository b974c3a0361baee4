package sftp

import (
	"context"
	"maps"
	"net/netip"
	"sync"
	"time"
)

// Limits on failed logins.
const (
	maxAddresses  = 1024 // counted separately; all others are counted together
	failuresFree  = 9    // failed logins per address and failureWindow without a delay
	failureWindow = time.Minute
	failureDelay  = time.Second // of each answer to an address with more failed logins
)

// throttle counts failed logins by address, and delays the answers to addresses with
// many. It locks nobody out: a valid login waits as long as any other answer.
type throttle struct {
	delay time.Duration

	mu  sync.Mutex
	all map[string]*failures // by network
}

// failures are the failed logins of one address.
type failures struct {
	since  time.Time // start of the failureWindow
	count  int
	logged time.Time
}

func newThrottle() *throttle { return &throttle{delay: failureDelay, all: map[string]*failures{}} }

// record counts a failed login. It reports whether to log it: at most once a second per
// address.
func (t *throttle) record(address string, now time.Time) (log bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.of(network(address), now)
	one.count++
	if log = now.Sub(one.logged) >= time.Second; log {
		one.logged = now
	}
	return log
}

// of returns the failures of a network in the present window. The caller holds mu.
func (t *throttle) of(name string, now time.Time) *failures {
	if t.all[name] == nil && len(t.all) >= maxAddresses {
		maps.DeleteFunc(t.all, func(_ string, one *failures) bool { return now.Sub(one.since) >= failureWindow })
	}
	if t.all[name] == nil && len(t.all) >= maxAddresses {
		name = "" // all other addresses together
	}
	one := t.all[name]
	if one == nil || now.Sub(one.since) >= failureWindow {
		one = &failures{since: now}
		t.all[name] = one
	}
	return one
}

// slow reports whether answers to an address are delayed.
func (t *throttle) slow(address string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.all[network(address)]
	if one == nil && len(t.all) >= maxAddresses {
		one = t.all[""]
	}
	return one != nil && now.Sub(one.since) < failureWindow && one.count > failuresFree
}

// wait delays an answer if the address is slow, or returns when ctx ends.
func (t *throttle) wait(ctx context.Context, address string) {
	if !t.slow(address, time.Now()) {
		return
	}
	timer := time.NewTimer(t.delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// network returns what the failures and connections of an address are counted under:
// the first 64 bits of an IPv6 address, which belong to one user.
func network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	prefix, _ := ip.WithZone("").Prefix(64) // 64 bits are in every IPv6 address
	return prefix.String()
}
