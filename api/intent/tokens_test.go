package intent_test

import (
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

const configured = v1.Secret("berth_00000000000000000000000000000000")

// clock is a time that a test sets.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.at.Load()) }
func (c *clock) forward(d time.Duration) { c.at.Add(int64(d)) }

func clockedStore(t *testing.T) (*store.Store, *clock) {
	c := &clock{}
	c.forward(1_000_000 * time.Second)
	s, err := store.Open("", store.Options{Now: c.now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, c
}

func mint(t *testing.T, s *store.Store, minter intent.Caller, r intent.TokenRequest) v1.Secret {
	t.Helper()
	r.MaxTTL = 720 * time.Hour
	secret, _, err := intent.MintToken(s, minter, r)
	require.NoError(t, err)
	return secret
}

func TestMintAndAuthenticate(t *testing.T) {
	s, c := clockedStore(t)
	c.forward(600 * time.Millisecond)
	ttl := "90s"
	r := intent.TokenRequest{TTL: &ttl, Scopes: []v1.Scope{v1.ScopeRead}, Containers: []string{"mc"}, MaxTTL: time.Hour}
	secret, expires, err := intent.MintToken(s, intent.Administrator(), r)
	require.NoError(t, err)
	require.Regexp(t, regexp.MustCompile(`^berth_[0-9a-f]{32}$`), secret.Reveal())
	require.Equal(t, c.now().Add(90*time.Second).UTC(), expires)

	caller, err := intent.Authenticate(s, configured, secret.Reveal())
	require.NoError(t, err)
	require.True(t, caller.May(v1.ScopeRead))
	require.False(t, caller.May(v1.ScopePower))
	require.True(t, caller.Sees("mc"))
	require.False(t, caller.Sees("other"))
	require.NoError(t, s.View(func(tx *store.Tx) error {
		o, err := store.Tokens.Get(tx, caller.TokenID)
		require.NotContains(t, o.Spec.Hash, strings.TrimPrefix(secret.Reveal(), "berth_"))
		return err
	}))
	c.forward(90*time.Second - 1)
	_, err = intent.Authenticate(s, configured, secret.Reveal())
	require.NoError(t, err)
	c.forward(1)
	_, err = intent.Authenticate(s, configured, secret.Reveal())
	require.Equal(t, intent.ErrUnauthorized, err, "expired")
}

func TestAuthenticateRefuses(t *testing.T) {
	s, _ := clockedStore(t)
	good := mint(t, s, intent.Administrator(), intent.TokenRequest{}).Reveal()
	for _, secret := range []string{"", "berth_", configured.Reveal() + "0", strings.ToUpper(good), good[:37], good + " ",
		"other" + good[5:], "berth_11111111111111111111111111111111"} {
		_, err := intent.Authenticate(s, configured, secret)
		require.Equal(t, intent.ErrUnauthorized, err, secret)
	}
	_, err := intent.Authenticate(s, "", "")
	require.Equal(t, intent.ErrUnauthorized, err, "no configured token is nobody's")
	admin, err := intent.Authenticate(s, configured, configured.Reveal())
	require.NoError(t, err)
	require.Equal(t, intent.Administrator(), admin)
}

func TestTTL(t *testing.T) {
	s, _ := clockedStore(t)
	for ttl, want := range map[string]time.Duration{
		"1s": time.Second, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "7d": 168 * time.Hour, "1d12h": 36 * time.Hour, "1w": 168 * time.Hour,
		"": 0, "0": 0, "0s": 0, "-1h": 0, "1": 0, "h": 0, "31d": 0, "1y": 0, "999999999999999999w": 0, "1ns": 0,
	} {
		var f intent.Faults
		got := intent.CheckToken(&f, intent.TokenRequest{TTL: &ttl, MaxTTL: 720 * time.Hour})
		require.Equal(t, want == 0, f.Any(), ttl)
		if want != 0 {
			require.Equal(t, want, got, ttl)
		}
	}
	_, expires, err := intent.MintToken(s, intent.Administrator(), intent.TokenRequest{MaxTTL: 720 * time.Hour})
	require.NoError(t, err)
	require.Equal(t, time.Unix(1_003_600, 0).UTC(), expires, "an hour when absent")
}

func TestAMintedTokenNeverExceedsItsMinter(t *testing.T) {
	s, c := clockedStore(t)
	minter := intent.Caller{TokenID: "x", Scopes: []v1.Scope{v1.ScopeRead, v1.ScopeFiles}, Containers: []string{"a", "b"}, ExpiresAt: c.now().Add(time.Minute)}
	hour := "1h"
	secret, expires, err := intent.MintToken(s, minter, intent.TokenRequest{TTL: &hour, MaxTTL: 24 * time.Hour})
	require.NoError(t, err)
	require.Equal(t, minter.ExpiresAt, expires)
	got, err := intent.Authenticate(s, configured, secret.Reveal())
	require.NoError(t, err)
	require.Equal(t, minter.Scopes, got.Scopes)
	require.Equal(t, minter.Containers, got.Containers)

	_, _, err = intent.MintToken(s, minter, intent.TokenRequest{Scopes: []v1.Scope{v1.ScopePower}, MaxTTL: time.Hour})
	require.Equal(t, intent.ErrScope, err)
	_, _, err = intent.MintToken(s, minter, intent.TokenRequest{Containers: []string{"a", "c"}, MaxTTL: time.Hour})
	require.Equal(t, v1.ErrContainerNotFound, err)
	_, _, err = intent.MintToken(s, minter, intent.TokenRequest{Scopes: []v1.Scope{}, Containers: []string{"", "-"}, MaxTTL: time.Hour})
	require.EqualError(t, err, "scopes: must name at least one scope; containers[0]: is required; "+
		"containers[1]: must be 1 to 63 letters, digits, _, . or -, and begin with a letter or digit")
}

func TestASingleUseTokenHasOneWinner(t *testing.T) {
	s, _ := clockedStore(t)
	secret := mint(t, s, intent.Administrator(), intent.TokenRequest{SingleUse: true})
	caller, err := intent.Authenticate(s, configured, secret.Reveal())
	require.NoError(t, err)
	_, err = intent.Authenticate(s, configured, secret.Reveal())
	require.NoError(t, err, "looking does not spend it")
	var won atomic.Int32
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if err := intent.Spend(s, caller); err == nil {
				won.Add(1)
			} else if err != intent.ErrUnauthorized {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, won.Load())
	_, err = intent.Authenticate(s, configured, secret.Reveal())
	require.Equal(t, intent.ErrUnauthorized, err)
}

func TestSpendExpired(t *testing.T) {
	s, c := clockedStore(t)
	secret := mint(t, s, intent.Administrator(), intent.TokenRequest{SingleUse: true})
	caller, err := intent.Authenticate(s, configured, secret.Reveal())
	require.NoError(t, err)
	c.forward(time.Hour)
	require.Equal(t, intent.ErrUnauthorized, intent.Spend(s, caller))
}

func TestListAndRevoke(t *testing.T) {
	s, c := clockedStore(t)
	minute := "1m"
	mint(t, s, intent.Administrator(), intent.TokenRequest{TTL: &minute})
	kept := mint(t, s, intent.Administrator(), intent.TokenRequest{})
	list := func() (tokens []v1.Token) {
		require.NoError(t, s.View(func(tx *store.Tx) (err error) {
			tokens, err = intent.ListTokens(tx)
			return err
		}))
		return tokens
	}
	require.Len(t, list(), 2)
	c.forward(time.Minute)
	require.Len(t, list(), 1)
	require.NoError(t, intent.RevokeToken(s, list()[0].Meta.ID))
	require.Empty(t, list())
	_, err := intent.Authenticate(s, configured, kept.Reveal())
	require.Equal(t, intent.ErrUnauthorized, err)
	require.ErrorIs(t, intent.RevokeToken(s, "none"), &v1.Error{Code: v1.TokenNotFound})
}
