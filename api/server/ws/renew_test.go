package ws

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"

	"berth/api/auth"
	v1 "berth/api/v1"
	"berth/store"
)

// TestExpiringTokenIsRenewed has sockets of a container and of the node: each is warned,
// one is renewed and stays open, the other one ends.
func TestExpiringTokenIsRenewed(t *testing.T) {
	h := newHarness(t)
	for path, states := range map[string]int{"/ws/mc": 1, "/ws": 2} {
		short := h.mint(auth.Grant{TTL: 2 * time.Second})
		kept, left := h.dial(path, short, states), h.dial(path, short, states)
		var expiry time.Time
		for _, c := range []*client{kept, left} {
			m := c.next()
			require.Contains(t, m.Data, "token is about to expire")
			require.False(t, m.Expires.IsZero())
			require.True(t, time.Now().Before(m.Expires), "the warning comes in time")
			expiry = m.Expires
		}
		m := kept.auth(h.mint(auth.Grant{TTL: time.Hour}))
		require.Equal(t, "token renewed", m.Data)
		require.WithinDuration(t, time.Now().Add(time.Hour), m.Expires, time.Minute)
		end := left.closed()
		require.Equal(t, websocket.ClosePolicyViolation, end.Code)
		require.Equal(t, "token has expired", end.Text)
		require.False(t, time.Now().Before(expiry))
		kept.write(`{"event":"request_logs","data":"0","container":"mc"}`)
		require.Equal(t, "logs", kept.next().Event, "the other socket is closed, so this one would be")
	}
}

func TestRenewedSocketEndsWithItsNewToken(t *testing.T) {
	h := newHarness(t)
	first, second := h.mint(auth.Grant{}), h.mint(auth.Grant{Scopes: []v1.Scope{v1.ScopeRead}})
	c := h.dial("/ws/mc", first, 1)
	require.Equal(t, "token renewed", c.auth(second).Data)
	c.write(`{"event":"send_command","data":"x"}`)
	require.Equal(t, "Token scope does not allow this operation", c.next().Data, "the scopes are those of the new one")
	require.NoError(t, auth.Revoke(h.store, h.id(first)))
	c.write(`{"event":"request_logs","data":"0"}`)
	require.Equal(t, "logs", c.next().Event)
	require.NoError(t, auth.Revoke(h.store, h.id(second)))
	end := c.closed()
	require.Equal(t, "token is revoked", end.Text)
	require.Eventually(t, func() bool { return h.sessions.Len() == 0 }, 10*time.Second, time.Millisecond)
}

// TestUnfitTokenLeavesTheOldOne sends tokens that do not allow the socket.
func TestUnfitTokenLeavesTheOldOne(t *testing.T) {
	h := newHarness(t)
	old := h.mint(auth.Grant{})
	revoked, spent := h.mint(auth.Grant{}), h.mint(auth.Grant{SingleUse: true})
	require.NoError(t, auth.Revoke(h.store, h.id(revoked)))
	h.dial("/ws/mc", spent, 1)
	const unauthorized, scope = "Missing or invalid authorization token", "Token scope does not allow this operation"
	for path, cases := range map[string]map[string]string{
		"/ws/mc": {
			"": unauthorized, "x": unauthorized, revoked: unauthorized, spent: unauthorized,
			h.mint(auth.Grant{Scopes: []v1.Scope{v1.ScopePower}}): scope,
			h.mint(auth.Grant{Containers: []string{"other"}}):     "Container not found",
			"berth_11111111111111111111111111111111":              unauthorized,
		},
		"/ws": {h.mint(auth.Grant{Containers: []string{"mc", "other"}}): scope},
	} {
		for token, want := range cases {
			c := h.dial(path, old, map[string]int{"/ws/mc": 1, "/ws": 2}[path])
			m := c.auth(token)
			require.Equal(t, want, m.Data)
			require.True(t, m.Expires.IsZero())
			require.Equal(t, "auth: wait a second between two tokens", c.auth(old).Data)
			c.write(`{"event":"send_command","data":"x","container":"mc"}`)
			c.write(`{"event":"request_stats","container":"mc"}`)
			require.Equal(t, "stats", c.next().Event, "it still has the old token")
		}
	}
	require.Len(t, h.wrong, 5)
	require.Equal(t, "192.0.2.1", h.wrong[0])
}

func TestRenewalUsesASingleUseToken(t *testing.T) {
	h := newHarness(t)
	first, second := h.mint(auth.Grant{SingleUse: true}), h.mint(auth.Grant{SingleUse: true})
	stored := func(secret string) (found bool) {
		require.NoError(t, h.store.View(func(tx *store.Tx) error {
			_, err := store.Tokens.Get(tx, h.id(secret))
			found = err == nil
			return nil
		}))
		return found
	}
	c := h.dial("/ws/mc", first, 1)
	require.Equal(t, "token renewed", c.auth(second).Data)
	require.False(t, stored(first), "its session has ended")
	require.True(t, stored(second))
	_, err := auth.Authenticate(h.store, settings{}.Current().Authorization, second)
	require.ErrorIs(t, err, auth.ErrUnauthorized, "it is spent")
	require.NoError(t, c.Close())
	require.Eventually(t, func() bool { return !stored(second) }, 10*time.Second, time.Millisecond)
}

func TestWarnIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for left, want := range map[time.Duration]time.Duration{
			time.Hour: 59 * time.Minute, 2 * time.Minute: time.Minute, time.Minute: 30 * time.Second,
			time.Second: 500 * time.Millisecond, 0: 0, -time.Hour: 0,
		} {
			require.Equal(t, want, warnIn(time.Now().Add(left)), left)
		}
		require.Greater(t, warnIn(time.Time{}), 100*365*24*time.Hour)
	})
}

func TestActorOfRenewedSocket(t *testing.T) {
	was := v1.Actor{TokenID: "a", Name: "n", Via: v1.ViaWebSocket, Address: "192.0.2.1", OnBehalfOf: "joe"}
	admin := auth.Principal{TokenID: "b", Scopes: []v1.Scope{v1.ScopeAdmin}}
	require.Equal(t, v1.Actor{TokenID: "b", Via: v1.ViaWebSocket, Address: "192.0.2.1", OnBehalfOf: "joe"}, actorOf(admin, was))
	reader := auth.Principal{TokenID: "c", Scopes: []v1.Scope{v1.ScopeRead}}
	require.Equal(t, v1.Actor{TokenID: "c", Via: v1.ViaWebSocket, Address: "192.0.2.1"}, actorOf(reader, was))
}
