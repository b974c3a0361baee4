package limit

import (
	"container/list"
	"context"
	"errors"
	"slices"
	"sync"
)

// Bounds are limits on what runs at once. A tenth of All is kept for the administrator, at least 1, or
// Spare if that is more, unless the tenants are Anonymous or All is 1.
type Bounds struct {
	All    int
	Tenant int // of one tenant
	Object int // on one object; 0: without a bound
	Kept   int // part of Object that is kept for the administrator
	Wait   int // claims of one tenant, and on one object, that wait for others to leave

	Spare     int  // part of All that is kept for the administrator at least
	Anonymous bool // tenants are addresses
}

// ofTenants returns the part of All that is not kept.
func (b Bounds) ofTenants() int {
	if b.Anonymous {
		return b.All
	}
	return max(1, b.All-max(1, b.All/10, b.Spare))
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

	mu      sync.Mutex
	used    int
	tenants int              // part of used
	by      map[string]*load // by tenant and by object; those of nothing are removed
	queue   []*place
}

// load is what one tenant has, or what runs on one object.
type load struct {
	used, waiting int
	oldest        list.List // of *place, those of Push
}

// place is a claim that has a slot or waits for one.
type place struct {
	Claim
	keys    []string
	granted chan struct{} // closed when it has a slot
	end     func()        // of Push
	at      *list.Element // in the load of its tenant; nil: it has left
}

// NewSlots returns Slots without claims. bounds is called for each claim: the bounds may
// change.
func NewSlots(bounds func() Bounds) *Slots { return &Slots{bounds: bounds, by: map[string]*load{}} }

// Fixed returns a function that returns b.
func Fixed(b Bounds) func() Bounds { return func() Bounds { return b } }

// Enter waits for a slot until ctx ends, and returns the function that frees it, which may
// be called again. It returns ErrAll, ErrTenant or ErrObject if too many wait already, and
// the error of ctx.
func (s *Slots) Enter(ctx context.Context, c Claim) (leave func(), err error) {
	p := s.place(c)
	if err := s.ask(p); err != nil {
		return func() {}, err
	}
	leave = sync.OnceFunc(func() { s.leave(p) })
	select {
	case <-p.granted: // also if ctx has ended
		return leave, nil
	default:
	}
	select {
	case <-p.granted:
		return leave, nil
	case <-ctx.Done():
		if !s.forget(p) {
			leave()
		}
		return func() {}, ctx.Err()
	}
}

// Push takes a slot at once, and calls the end of others where a bound is exceeded, which
// may be its own. The caller calls leave when what it began has ended.
func (s *Slots) Push(c Claim, end func()) (leave func()) {
	p := s.place(c)
	p.end = end
	s.mu.Lock()
	s.add(p)
	ended := s.tooMany(p)
	s.mu.Unlock()
	for _, one := range ended {
		one.end()
	}
	return func() { s.remove(p) }
}

// Trim ends claims of Push that exceed the bounds, which may have changed.
func (s *Slots) Trim() {
	s.mu.Lock()
	ended := s.tooMany(nil)
	s.mu.Unlock()
	for _, one := range ended {
		one.end()
	}
}

// Used returns what all claims have.
func (s *Slots) Used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// UsedBy returns what one tenant has.
func (s *Slots) UsedBy(tenant string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.by[tenantKey(tenant)]; l != nil {
		return l.used
	}
	return 0
}

// Waiting returns how many claims wait.
func (s *Slots) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

func tenantKey(name string) string { return "tenant " + name }

func (s *Slots) place(c Claim) *place {
	c.N = max(c.N, 1)
	p := &place{Claim: c, keys: []string{tenantKey(c.Tenant)}, granted: make(chan struct{})}
	if c.Object != "" {
		p.keys = append(p.keys, "object "+c.Object)
	}
	return p
}

// ask grants p a slot, or queues it, or returns the bound that refuses it.
func (s *Slots) ask(p *place) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bounds()
	refused := s.exceeds(p, b)
	if refused == nil {
		s.add(p)
		return nil
	}
	defer s.clean(p)
	if b.Wait == 0 {
		return refused
	}
	for i, l := range s.loads(p) {
		if i == 0 && p.Tenant == "" { // the administrator serves many
			continue
		}
		if l.waiting >= b.Wait {
			return refused
		}
	}
	for _, l := range s.loads(p) {
		l.waiting++
	}
	s.queue = append(s.queue, p)
	return nil
}

// exceeds returns the bound that p would exceed, or nil.
func (s *Slots) exceeds(p *place, b Bounds) error {
	loads, object := s.loads(p), b.Object
	if p.Tenant != "" {
		object -= b.Kept
	}
	switch {
	case p.Tenant != "" && !p.Shared && loads[0].used+p.N > b.Tenant:
		return ErrTenant
	case b.Object > 0 && len(loads) > 1 && loads[1].used+p.N > object:
		return ErrObject
	case s.used+p.N > b.All, p.Tenant != "" && s.tenants+p.N > b.ofTenants():
		return ErrAll
	}
	return nil
}

// loads returns the loads that p counts for: its tenant's, then its object's.
func (s *Slots) loads(p *place) (loads []*load) {
	for _, key := range p.keys {
		if s.by[key] == nil {
			s.by[key] = &load{}
		}
		loads = append(loads, s.by[key])
	}
	return loads
}

func (s *Slots) add(p *place) {
	s.count(p, p.N)
	if p.end != nil {
		p.at = s.loads(p)[0].oldest.PushBack(p)
	}
	close(p.granted)
}

func (s *Slots) count(p *place, n int) {
	s.used += n
	if p.Tenant != "" {
		s.tenants += n
	}
	for _, l := range s.loads(p) {
		l.used += n
	}
}

// leave frees the slot of p, and grants slots to the queued claims that fit now.
func (s *Slots) leave(p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(p, -p.N)
	s.clean(p)
	b := s.bounds()
	s.queue = slices.DeleteFunc(s.queue, func(next *place) bool {
		if s.exceeds(next, b) != nil {
			return false
		}
		for _, l := range s.loads(next) {
			l.waiting--
		}
		s.add(next)
		return true
	})
}

// forget removes p from the queue, and reports whether it was still queued.
func (s *Slots) forget(p *place) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.queue, p)
	if i < 0 {
		return false
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	for _, l := range s.loads(p) {
		l.waiting--
	}
	s.clean(p)
	return true
}

// clean removes the loads of p that have nothing.
func (s *Slots) clean(p *place) {
	for _, key := range p.keys {
		if l := s.by[key]; l != nil && l.used == 0 && l.waiting == 0 {
			delete(s.by, key)
		}
	}
}

// remove frees the slot of a claim of Push, unless it was ended for another.
func (s *Slots) remove(p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(p)
}

func (s *Slots) drop(p *place) {
	if p.at == nil {
		return
	}
	s.by[p.keys[0]].oldest.Remove(p.at)
	p.at = nil
	s.count(p, -p.N)
	s.clean(p)
}

// tooMany removes and returns the claims of Push that exceed a bound: of the tenant of
// added, if it is not nil, then in all.
func (s *Slots) tooMany(added *place) (ended []*place) {
	b := s.bounds()
	take := func(key string) {
		p := s.by[key].oldest.Front().Value.(*place)
		s.drop(p)
		ended = append(ended, p)
	}
	if added != nil && added.Tenant != "" && !added.Shared {
		for s.by[added.keys[0]].used > b.Tenant {
			take(added.keys[0])
		}
	}
	for s.tenants > b.ofTenants() || s.used > b.All {
		take(s.largest())
	}
	return ended
}

// largest returns the key of the tenant that has most, or of the administrator if nobody
// else has any.
func (s *Slots) largest() (most string) {
	most = tenantKey("")
	n := 0
	for key, l := range s.by {
		if key != tenantKey("") && l.oldest.Len() > n {
			most, n = key, l.oldest.Len()
		}
	}
	return most
}
