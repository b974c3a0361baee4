package auth

import (
	"sync"
	"time"

	"berth/api/limit"
	v1 "berth/api/v1"
	"berth/store"
)

// ticketTTL is how long a ticket is valid. It only has to reach the server again.
const ticketTTL = 30 * time.Second

// Tickets are tokens for one request each with the rights of another token, for a browser: the
// address of a WebSocket or of a download has to have a token, and should not have one that is
// worth to be kept. They are kept in memory: a page needs one for each connection, and a
// client whose ticket a restart of berth has ended gets another one.
type Tickets struct {
	slots *limit.Slots

	mu sync.Mutex
	by map[string]ticket // by the hash of the secret
}

// ticket is the right to one request.
type ticket struct {
	of      Principal
	expires time.Time
	leave   func() // frees its slot
}

// NewTickets returns an empty Tickets.
func NewTickets() *Tickets {
	return &Tickets{slots: limit.NewSlots(limit.Tickets), by: map[string]ticket{}}
}

// Issue returns a new ticket with the rights of p, and when it expires. A single-use token
// gets none: it would have many uses.
func (t *Tickets) Issue(p Principal) (v1.Secret, time.Time, error) {
	if p.SingleUse {
		return "", time.Time{}, ErrScope
	}
	secret := NewSecret()
	hash, now := secret.Hash(), time.Now()
	one := ticket{of: p, expires: expiry(now, ticketTTL, p.ExpiresAt), leave: func() {}}
	t.expire(now)
	t.mu.Lock()
	t.by[hash] = one // before it has a slot, which others may take at once
	t.mu.Unlock()
	leave := t.slots.Push(limit.Claim{Tenant: p.Tenant()}, func() { t.take(hash) })
	t.mu.Lock()
	defer t.mu.Unlock()
	if one, valid := t.by[hash]; valid {
		one.leave = leave
		t.by[hash] = one
	} else {
		leave()
	}
	return secret, one.expires, nil
}

// Find returns the principal of a ticket, or ErrUnauthorized. It does not spend the ticket,
// see Spend.
func (t *Tickets) Find(s *store.Store, c v1.AuthorizationConfig, secret string) (p Principal, err error) {
	hash := v1.Secret(secret).Hash()
	t.mu.Lock()
	one, found := t.by[hash]
	t.mu.Unlock()
	if !found || !time.Now().Before(one.expires) {
		return Principal{}, ErrUnauthorized
	}
	p = one.of
	p.ticket, p.SingleUse, p.Configured = hash, true, false
	return p.Verify(s.Read(), c)
}

// Spend spends the ticket of p. If several requests have the same one, one succeeds and the
// others get ErrUnauthorized.
func (t *Tickets) Spend(p Principal) error {
	if !t.take(p.ticket) {
		return ErrUnauthorized
	}
	return nil
}

// take removes a ticket, and reports whether it was there.
func (t *Tickets) take(hash string) bool {
	t.mu.Lock()
	one, found := t.by[hash]
	delete(t.by, hash)
	t.mu.Unlock()
	if found {
		one.leave()
	}
	return found
}

// expire removes the tickets that have expired.
func (t *Tickets) expire(now time.Time) {
	t.mu.Lock()
	var leaves []func()
	for hash, one := range t.by {
		if !now.Before(one.expires) {
			delete(t.by, hash)
			leaves = append(leaves, one.leave)
		}
	}
	t.mu.Unlock()
	for _, leave := range leaves {
		leave()
	}
}
