package limit

import (
	"container/list"
	"context"
	"errors"
	"strings"
	"sync"
)

// Bounds are limits on what runs at once.
type Bounds struct {
	All    int
	Tenant int // of one tenant
	Object int // on one object; 0: without a bound
	Wait   int // claims of one tenant, and on one object, that wait for others to leave

	// Kept is the part of All, and of Object, that tenants leave to the administrator. Of All it is
	// a tenth at least, and 1 at least unless All is 1.
	Kept      int
	Anonymous bool // tenants are addresses, and nothing is kept
}

// ofTenants returns the part of All that is not kept.
func (b Bounds) ofTenants() int {
	if b.Anonymous {
		return b.All
	}
	return max(1, b.All-max(1, b.All/10, b.Kept))
}

// Claim is what one request takes.
type Claim struct {
	Tenant string // empty: the administrator
	Object string // such as a container; empty: none
	N      int    // 0: 1
	Shared bool   // many clients are behind Tenant, such as a proxy: its bound does not hold
}

// The bounds that a claim may exceed.
var (
	ErrAll    = errors.New("too much at once")
	ErrTenant = errors.New("too much at once of one tenant")
	ErrObject = errors.New("too much at once on one object")
)

// Slots are Bounds with what runs. A claim that does not fit waits with Enter; a freed slot
// goes to the first one that fits. With Push it takes the place of the oldest one of those
// who have most.
type Slots struct {
	bounds func() Bounds

	mu            sync.Mutex
	held, waiting line
}

// line is claims in the order in which they came. sum has their sums for all, for all tenants, for
// each tenant and for each object.
type line struct {
	list.List // of *slot
	sum       map[string]int
}

// The keys of sums; those of a tenant and of an object have its name after them.
const (
	ofAll     = "all"
	ofTenants = "tenants"
	ofTenant  = "tenant "
	onObject  = "object "
)

// slot is a claim that has a slot or waits for one.
type slot struct {
	Claim
	granted chan struct{} // closed when it has a slot
	end     func()        // of Push
	in      *line         // nil: it has left
	at      *list.Element // of in
}

// count adds n to the sums of a claim.
func (l *line) count(c Claim, n int) {
	keys := []string{ofAll, ofTenant + c.Tenant}
	if c.Tenant != "" {
		keys = append(keys, ofTenants)
	}
	if c.Object != "" {
		keys = append(keys, onObject+c.Object)
	}
	for _, key := range keys {
		if l.sum[key] += n; l.sum[key] == 0 {
			delete(l.sum, key)
		}
	}
}

// NewSlots returns Slots without claims. bounds is called for each claim: the bounds may
// change.
func NewSlots(bounds func() Bounds) *Slots {
	return &Slots{bounds: bounds, held: line{sum: map[string]int{}}, waiting: line{sum: map[string]int{}}}
}

// Fixed returns a function that returns b.
func Fixed(b Bounds) func() Bounds { return func() Bounds { return b } }

// Enter waits for a slot until ctx ends, and returns the function that frees it, which may
// be called again. It returns ErrAll, ErrTenant or ErrObject if too many wait already, and
// the error of ctx.
func (s *Slots) Enter(ctx context.Context, c Claim) (leave func(), err error) {
	one := newSlot(c, nil)
	if err := s.ask(one); err != nil {
		return func() {}, err
	}
	leave = func() { s.leave(one) }
	select {
	case <-one.granted: // also if ctx has ended
		return leave, nil
	default:
	}
	select {
	case <-one.granted:
		return leave, nil
	case <-ctx.Done():
		leave()
		return func() {}, ctx.Err()
	}
}

// Push takes a slot at once, and calls the end of others where a bound is exceeded, which
// may be its own. The caller calls leave when what it began has ended.
func (s *Slots) Push(c Claim, end func()) (leave func()) {
	one := newSlot(c, end)
	s.mu.Lock()
	s.grant(one)
	s.mu.Unlock()
	s.trim(one)
	return func() { s.leave(one) }
}

// Trim ends claims of Push that exceed the bounds, which may have changed.
func (s *Slots) Trim() { s.trim(nil) }

// Used returns what all claims have.
func (s *Slots) Used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held.sum[ofAll]
}

// UsedBy returns what one tenant has.
func (s *Slots) UsedBy(tenant string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held.sum[ofTenant+tenant]
}

// Waiting returns how many claims wait.
func (s *Slots) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting.Len()
}

func newSlot(c Claim, end func()) *slot {
	c.N = max(c.N, 1)
	return &slot{Claim: c, end: end, granted: make(chan struct{})}
}

// ask grants a slot, or queues the claim, or returns the bound that refuses it.
func (s *Slots) ask(one *slot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bounds()
	refused := s.exceeds(one.Claim, b)
	if refused == nil {
		s.grant(one)
		return nil
	}
	// The administrator serves many.
	ofOwn, ofSame := one.Tenant != "" && s.waiting.sum[ofTenant+one.Tenant] >= b.Wait, one.Object != "" && s.waiting.sum[onObject+one.Object] >= b.Wait
	if b.Wait == 0 || ofOwn || ofSame {
		return refused
	}
	s.waiting.count(one.Claim, 1)
	one.in, one.at = &s.waiting, s.waiting.PushBack(one)
	return nil
}

// exceeds returns the bound that a claim would exceed, or nil.
func (s *Slots) exceeds(c Claim, b Bounds) error {
	sum, object := s.held.sum, b.Object
	if c.Tenant != "" {
		object -= b.Kept
	}
	switch {
	case c.Tenant != "" && !c.Shared && sum[ofTenant+c.Tenant]+c.N > b.Tenant:
		return ErrTenant
	case b.Object > 0 && c.Object != "" && sum[onObject+c.Object]+c.N > object:
		return ErrObject
	case sum[ofAll]+c.N > b.All, c.Tenant != "" && sum[ofTenants]+c.N > b.ofTenants():
		return ErrAll
	}
	return nil
}

func (s *Slots) grant(one *slot) {
	s.held.count(one.Claim, one.N)
	one.in, one.at = &s.held, s.held.PushBack(one)
	close(one.granted)
}

// leave frees a slot and grants it to the queued claims that fit now, or removes a claim from the
// queue.
func (s *Slots) leave(one *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(one)
	b := s.bounds()
	for e := s.waiting.Front(); e != nil; {
		next := e.Value.(*slot)
		e = e.Next()
		if s.exceeds(next.Claim, b) == nil {
			s.drop(next)
			s.grant(next)
		}
	}
}

// drop removes a claim from its line, if it is in one.
func (s *Slots) drop(one *slot) {
	switch one.in {
	case nil:
		return
	case &s.held:
		s.held.count(one.Claim, -one.N)
	default:
		s.waiting.count(one.Claim, -1)
	}
	one.in.Remove(one.at)
	one.in = nil
}

// trim ends claims that exceed a bound: of the tenant of added, if it is not nil, then in all.
func (s *Slots) trim(added *slot) {
	var ended []*slot
	s.mu.Lock()
	b, sum := s.bounds(), s.held.sum
	for added != nil && added.Tenant != "" && !added.Shared && sum[ofTenant+added.Tenant] > b.Tenant {
		ended = append(ended, s.dropOldest(added.Tenant))
	}
	for sum[ofTenants] > b.ofTenants() || sum[ofAll] > b.All {
		ended = append(ended, s.dropOldest(s.largest()))
	}
	s.mu.Unlock()
	for _, one := range ended {
		one.end()
	}
}

// dropOldest removes and returns the oldest claim of a tenant that has some.
func (s *Slots) dropOldest(tenant string) *slot {
	for e := s.held.Front(); ; e = e.Next() {
		if one := e.Value.(*slot); one.Tenant == tenant {
			s.drop(one)
			return one
		}
	}
}

// largest returns the tenant that has most, or the administrator if nobody else has any.
func (s *Slots) largest() (most string) {
	n := 0
	for key, has := range s.held.sum {
		if tenant, is := strings.CutPrefix(key, ofTenant); is && tenant != "" && has > n {
			most, n = tenant, has
		}
	}
	return most
}
