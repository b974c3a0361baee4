package limit

import (
	"context"
	"errors"
	"slices"
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

	// Check is called when the claim had to wait, before it goes on: what admitted it may have changed
	// meanwhile. nil: nothing may.
	Check func() error
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
	held, waiting []*slot // in the order in which they came
}

// slot is a claim that has a slot or waits for one.
type slot struct {
	Claim
	granted chan struct{} // closed when it has a slot
	end     func()        // of Push
}

// NewSlots returns Slots without claims. bounds is called for each claim: the bounds may
// change.
func NewSlots(bounds func() Bounds) *Slots { return &Slots{bounds: bounds} }

// Enter waits for a slot until ctx ends, and returns the function that frees it, which may
// be called again. It returns ErrAll, ErrTenant or ErrObject if too many wait already, the error of
// ctx, and that of the claim's Check.
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
	case <-ctx.Done():
		leave()
		return func() {}, ctx.Err()
	}
	if c.Check != nil {
		if err := c.Check(); err != nil {
			leave()
			return func() {}, err
		}
	}
	return leave, nil
}

// IsRefusal reports whether an error of Enter is about a bound.
func IsRefusal(err error) bool {
	return errors.Is(err, ErrAll) || errors.Is(err, ErrTenant) || errors.Is(err, ErrObject)
}

// Push takes a slot at once, and calls the end of others where a bound is exceeded, which
// may be its own. The caller calls leave when what it began has ended.
func (s *Slots) Push(c Claim, end func()) (leave func()) {
	one := newSlot(c, end)
	s.mu.Lock()
	s.grant(one)
	ended := s.trim(one.Claim)
	s.mu.Unlock()
	for _, other := range ended {
		other.end()
	}
	return func() { s.leave(one) }
}

// Used returns what all claims have.
func (s *Slots) Used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sums(Claim{}).all
}

// UsedBy returns what one tenant has.
func (s *Slots) UsedBy(tenant string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sums(Claim{Tenant: tenant}).tenant
}

// Waiting returns how many claims wait.
func (s *Slots) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

func newSlot(c Claim, end func()) *slot {
	c.N = max(c.N, 1)
	return &slot{Claim: c, end: end, granted: make(chan struct{})}
}

// sums are what is held: by all, by all tenants, and by the tenant and on the object of a claim.
type sums struct{ all, tenants, tenant, object int }

func (s *Slots) sums(c Claim) (n sums) {
	for _, one := range s.held {
		n.all += one.N
		if one.Tenant != "" {
			n.tenants += one.N
		}
		if one.Tenant == c.Tenant {
			n.tenant += one.N
		}
		if one.Object == c.Object {
			n.object += one.N
		}
	}
	return n
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
	ofTenant, onObject := 0, 0
	for _, other := range s.waiting {
		if one.Tenant != "" && other.Tenant == one.Tenant { // the administrator serves many
			ofTenant++
		}
		if one.Object != "" && other.Object == one.Object {
			onObject++
		}
	}
	if max(ofTenant, onObject) >= b.Wait {
		return refused
	}
	s.waiting = append(s.waiting, one)
	return nil
}

// exceeds returns the bound that a claim would exceed, or nil.
func (s *Slots) exceeds(c Claim, b Bounds) error {
	n, object := s.sums(c), b.Object
	if c.Tenant != "" {
		object -= b.Kept
	}
	switch {
	case c.Tenant != "" && !c.Shared && n.tenant+c.N > b.Tenant:
		return ErrTenant
	case b.Object > 0 && c.Object != "" && n.object+c.N > object:
		return ErrObject
	case n.all+c.N > b.All, c.Tenant != "" && n.tenants+c.N > b.ofTenants():
		return ErrAll
	}
	return nil
}

func (s *Slots) grant(one *slot) {
	s.held = append(s.held, one)
	close(one.granted)
}

// leave frees a slot and grants it to the queued claims that fit now, or removes a claim from the
// queue.
func (s *Slots) leave(one *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(one)
	b := s.bounds()
	for _, next := range slices.Clone(s.waiting) {
		if s.exceeds(next.Claim, b) == nil {
			s.remove(next)
			s.grant(next)
		}
	}
}

func (s *Slots) remove(one *slot) {
	is := func(other *slot) bool { return other == one }
	s.held, s.waiting = slices.DeleteFunc(s.held, is), slices.DeleteFunc(s.waiting, is)
}

// trim removes and returns the claims that exceed a bound after a new one: of its tenant, and of all.
func (s *Slots) trim(c Claim) (ended []*slot) {
	for b := s.bounds(); ; {
		n, from := s.sums(c), c.Tenant
		if c.Tenant == "" || c.Shared || n.tenant <= b.Tenant {
			if n.tenants <= b.ofTenants() && n.all <= b.All {
				return ended
			}
			from = s.largest()
		}
		oldest := s.held[slices.IndexFunc(s.held, func(one *slot) bool { return one.Tenant == from })]
		s.remove(oldest)
		ended = append(ended, oldest)
	}
}

// largest returns the tenant that has most, or the administrator if nobody else has any.
func (s *Slots) largest() (most string) {
	by := map[string]int{}
	for _, one := range s.held {
		if by[one.Tenant] += one.N; one.Tenant != "" && (most == "" || by[one.Tenant] > by[most]) {
			most = one.Tenant
		}
	}
	return most
}
