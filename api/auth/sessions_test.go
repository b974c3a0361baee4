package auth_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"berth/api/auth"
	"berth/api/limit"
	v1 "berth/api/v1"
	"berth/store"
)

// fixed is a configuration that never changes.
type fixed struct{ v1.Config }

func (f fixed) Current() v1.Config { return f.Config }

func (f fixed) Changed() <-chan struct{} { return nil }

// TestExpiredSessionEnds: a session that begins while none was open ends within
// a second of its token's expiry, even if others begin all the time.
func TestExpiredSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		all := auth.NewSessions(s, fixed{v1.Config{Authorization: inForce(configured)}})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { all.Run(ctx) })
		p := as(t, s, mint(t, s, auth.Grant{TTL: time.Hour + time.Minute}))
		time.Sleep(time.Hour)
		began, ended := time.Now(), make(chan error, 1)
		done, err := all.Begin(&auth.Session{Principal: p, End: func(reason error) { ended <- reason }})
		require.NoError(t, err)
		other := as(t, s, configured)
		for len(ended) == 0 && time.Since(began) < 5*time.Minute {
			time.Sleep(50 * time.Millisecond)
			end, err := all.Begin(&auth.Session{Principal: other, End: func(error) {}})
			require.NoError(t, err)
			end()
		}
		require.Len(t, ended, 1, "the session goes on")
		require.Equal(t, auth.ErrExpired, <-ended)
		require.InDelta(t, time.Minute, time.Since(began), float64(time.Second))
		done()
		cancel()
		running.Wait()
		require.NoError(t, s.Close())
	})
}

// TestSessionsOfATenant: the tokens of one container share the limit of a tenant, and leave
// others theirs.
func TestSessionsOfATenant(t *testing.T) {
	s, err := store.Open("", store.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	containers(t, s, "mc", "other")
	all := auth.NewSessions(s, fixed{v1.Config{Authorization: inForce(configured)}})
	var done []func()
	begin := func(p auth.Principal) error {
		end, err := all.Begin(&auth.Session{Principal: p, End: func(error) {}})
		if err == nil {
			done = append(done, end)
		}
		return err
	}
	tickets := auth.NewTickets()
	limited := func(id string) auth.Principal {
		p := as(t, s, mint(t, s, auth.Grant{Containers: []string{id}}))
		secret, _, err := tickets.Issue(p)
		require.NoError(t, err)
		p, err = tickets.Find(s, inForce(configured), secret.Reveal())
		require.NoError(t, err)
		return p
	}
	for range limit.Sessions().Tenant {
		require.NoError(t, begin(limited("mc")))
	}
	require.ErrorIs(t, begin(limited("mc")), &v1.Error{Code: v1.TooManySessions})
	require.ErrorIs(t, begin(as(t, s, mint(t, s, auth.Grant{Containers: []string{"other", "mc"}}))), &v1.Error{Code: v1.TooManySessions})
	require.NoError(t, begin(limited("other")))
	require.NoError(t, begin(as(t, s, mint(t, s, auth.Grant{}))))
	require.NoError(t, begin(as(t, s, configured)))
	for _, end := range done {
		end()
	}
	require.Zero(t, all.Len())
}

// TestTicketsOfATenant: a tenant's tickets push out its own only.
func TestTicketsOfATenant(t *testing.T) {
	s, err := store.Open("", store.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	containers(t, s, "mc", "other")
	tickets := auth.NewTickets()
	issue := func(id string) v1.Secret {
		secret, _, err := tickets.Issue(as(t, s, mint(t, s, auth.Grant{Containers: []string{id}})))
		require.NoError(t, err)
		return secret
	}
	valid := func(secret v1.Secret) bool {
		_, err := tickets.Find(s, inForce(configured), secret.Reveal())
		return err == nil
	}
	other, first := issue("other"), issue("mc")
	for range limit.Tickets().Tenant - 1 {
		issue("mc")
	}
	require.True(t, valid(first))
	issue("mc")
	require.False(t, valid(first))
	require.True(t, valid(other))
	var p auth.Principal
	p, err = tickets.Find(s, inForce(configured), other.Reveal())
	require.NoError(t, err)
	require.NoError(t, tickets.Spend(p))
	require.ErrorIs(t, tickets.Spend(p), auth.ErrUnauthorized)
	require.False(t, valid(other))
}

// TestTicketShowsNoSecrets: it has the rights of the configured token, and is not shown the configuration's secrets:
// it is in the addresses of browsers and of proxies.
func TestTicketShowsNoSecrets(t *testing.T) {
	s, _ := clockedStore(t)
	tickets, p := auth.NewTickets(), as(t, s, configured)
	require.True(t, p.Configured)
	secret, _, err := tickets.Issue(p)
	require.NoError(t, err)
	p, err = tickets.Find(s, inForce(configured), secret.Reveal())
	require.NoError(t, err)
	require.True(t, p.HasScope(v1.ScopeAdmin))
	require.False(t, p.Configured)
}

// TestTicketIsForOneRequest of the next 30 seconds, also when its principal is verified again.
func TestTicketIsForOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		defer s.Close()
		tickets := auth.NewTickets()
		secret, expires, err := tickets.Issue(as(t, s, mint(t, s, auth.Grant{})))
		require.NoError(t, err)
		p, err := tickets.Find(s, inForce(configured), secret.Reveal())
		require.NoError(t, err)
		require.True(t, p.SingleUse)
		time.Sleep(time.Until(expires))
		_, err = tickets.Find(s, inForce(configured), secret.Reveal())
		require.Equal(t, auth.ErrUnauthorized, err)
	})
}

// TestOthersRequestsAreShownWithoutAddresses to a token that is limited to containers.
func TestOthersRequestsAreShownWithoutAddresses(t *testing.T) {
	actor := v1.Actor{TokenID: "other", Name: "alice", Via: v1.ViaHTTP, Address: "192.0.2.1", OnBehalfOf: "bob"}
	p := auth.Principal{TokenID: "own", Bound: []v1.ContainerRef{{ID: "mc", UID: "u"}}}
	require.Equal(t, v1.Actor{Name: "alice", Via: v1.ViaHTTP}, p.Show(v1.Event{Actor: actor}).Actor)
	actor.TokenID = "own"
	require.Equal(t, actor, p.Show(v1.Event{Actor: actor}).Actor)
}

// TestTicketsThatExpireAtOnce issues tickets with a token that has expired meanwhile: another request
// removes them before they have a slot.
func TestTicketsThatExpireAtOnce(t *testing.T) {
	tickets := auth.NewTickets()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 2000 {
				_, _, err := tickets.Issue(auth.Principal{TokenID: "t", ExpiresAt: time.Now().Add(-time.Second)})
				assert.NoError(t, err)
			}
		})
	}
	all.Wait()
}

// TestSessionsWithoutStore: while the store cannot be read, no session ends, and none begins.
func TestSessionsWithoutStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		defer s.Close()
		all := auth.NewSessions(s, fixed{v1.Config{Authorization: inForce(configured)}})
		ctx, cancel := context.WithCancel(t.Context())
		go all.Run(ctx)
		var fails atomic.Bool
		session := func() *auth.Session {
			check := func(*store.Tx, auth.Principal) error {
				if fails.Load() {
					return fmt.Errorf("%w: input/output error", store.ErrFailed)
				}
				return nil
			}
			return &auth.Session{Principal: as(t, s, configured), Check: check, End: func(reason error) { t.Error("ended:", reason) }}
		}
		done, err := all.Begin(session())
		require.NoError(t, err)
		fails.Store(true)
		_, err = all.Begin(session())
		require.ErrorIs(t, err, store.ErrFailed)
		time.Sleep(time.Minute)
		done()
		cancel()
		synctest.Wait()
	})
}
