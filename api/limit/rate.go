package limit

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Pace is the number of times that something may happen for each key: Burst at once, and one
// more in each Every.
type Pace struct {
	Every time.Duration
	Burst int
	Keys  int // counted separately; all others share one count
}

// Rate is a Pace with its counts. The empty key is the administrator's: nothing is counted
// for it.
type Rate struct {
	pace Pace

	mu   sync.Mutex
	by   map[string]*rate.Limiter // the empty key: those beyond Keys
	left map[string]int           // what List has left out, by the same keys
}

// NewRate returns a Rate that has counted nothing.
func NewRate(p Pace) *Rate {
	return &Rate{pace: p, by: map[string]*rate.Limiter{}, left: map[string]int{}}
}

// Take counts n for a key if that may happen now, and returns 0. Else it counts nothing,
// and returns how long that would have to wait.
func (r *Rate) Take(key string, n int) (wait time.Duration) {
	now := time.Now()
	claim := r.of(key, now).ReserveN(now, min(n, r.pace.Burst))
	if wait = claim.DelayFrom(now); wait > 0 {
		claim.CancelAt(now)
	}
	return wait
}

// List reports whether a line or an entry for a key may be written now, and how many like it were left
// out since the last one.
func (r *Rate) List(key string) (left int, ok bool) {
	ok = r.Take(key, 1) == 0
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by[key] == nil {
		key = ""
	}
	if !ok {
		r.left[key]++
		return 0, false
	}
	left = r.left[key]
	delete(r.left, key)
	return left, true
}

// Count counts n for a key although that may be too much: then whatever follows waits for
// longer.
func (r *Rate) Count(key string, n int) {
	now := time.Now()
	r.of(key, now).ReserveN(now, min(n, r.pace.Burst))
}

// Left returns how long n more would have to wait, without counting them.
func (r *Rate) Left(key string, n int) time.Duration {
	if key == "" {
		return 0
	}
	now := time.Now()
	missing := float64(n) - r.of(key, now).TokensAt(now)
	return max(0, time.Duration(missing*float64(r.pace.Every)))
}

// Wait counts one for a key, and waits until that may happen. If ctx ends before, it
// counts nothing and returns the error of ctx. If it has waited, it returns the error of check: what
// admitted the caller may have changed meanwhile.
func (r *Rate) Wait(ctx context.Context, key string, check func() error) error {
	if r.Take(key, 1) == 0 {
		return nil
	}
	if err := r.of(key, time.Now()).Wait(ctx); err != nil {
		return err
	}
	return check()
}

// of returns the count of a key. If there are too many, it forgets those that are full
// again.
func (r *Rate) of(key string, now time.Time) *rate.Limiter {
	if key == "" {
		return rate.NewLimiter(rate.Inf, 0)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by[key] == nil && len(r.by) >= r.pace.Keys {
		for k, l := range r.by {
			if l.TokensAt(now) >= float64(r.pace.Burst) {
				delete(r.by, k)
				delete(r.left, k)
			}
		}
		if len(r.by) >= r.pace.Keys {
			key = ""
		}
	}
	if r.by[key] == nil {
		r.by[key] = rate.NewLimiter(rate.Every(r.pace.Every), r.pace.Burst)
	}
	return r.by[key]
}

// Network returns what an address is counted by: an IPv4 address itself, or the /64 of an
// IPv6 address, which providers assign to one customer.
func Network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	prefix, _ := ip.WithZone("").Prefix(64) // 64 bits are in every IPv6 address
	return prefix.String()
}
