package auth_test

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/auth"
	v1 "berth/api/v1"
	"berth/store"
)

const configured = v1.Secret("berth_00000000000000000000000000000000")

// inForce returns a configuration with a token.
func inForce(token v1.Secret) v1.AuthorizationConfig {
	return v1.AuthorizationConfig{Enabled: true, Token: token}
}

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

// containers stores some containers.
func containers(t *testing.T, s *store.Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		require.NoError(t, s.Update(func(tx *store.Tx) error {
			return store.Containers.Create(tx, id, v1.ContainerSpec{VolumeID: "volume of " + id})
		}))
	}
}

// as authenticates a secret that must be valid.
func as(t *testing.T, s *store.Store, secret v1.Secret) auth.Principal {
	t.Helper()
	p, err := auth.Authenticate(s, inForce(configured), secret.Reveal())
	require.NoError(t, err)
	return p
}

// mint mints with the configured token.
func mint(t *testing.T, s *store.Store, g auth.Grant) v1.Secret {
	t.Helper()
	return mintWith(t, s, configured, g)
}

func mintWith(t *testing.T, s *store.Store, minter v1.Secret, g auth.Grant) v1.Secret {
	t.Helper()
	if g.TTL == 0 {
		g.TTL = time.Hour
	}
	secret, _, err := auth.Mint(s, inForce(configured), as(t, s, minter), g)
	require.NoError(t, err)
	return secret
}

func TestMintAndAuthenticate(t *testing.T) {
	s, c := clockedStore(t)
	containers(t, s, "mc", "other")
	c.forward(600 * time.Millisecond)
	g := auth.Grant{TTL: 90 * time.Second, Scopes: []v1.Scope{v1.ScopeRead}, Containers: []string{"mc"}}
	secret, expires, err := auth.Mint(s, inForce(configured), as(t, s, configured), g)
	require.NoError(t, err)
	require.Regexp(t, regexp.MustCompile(`^berth_[0-9a-f]{32}$`), secret.Reveal())
	require.Equal(t, c.now().Add(90*time.Second+400*time.Millisecond).UTC(), expires, "rounded up to a second")

	p := as(t, s, secret)
	require.True(t, p.HasScope(v1.ScopeRead))
	require.False(t, p.HasScope(v1.ScopePower))
	require.True(t, p.CanAccess("mc"))
	require.False(t, p.CanAccess("other"))
	{
		tx := s.Read()
		require.NoError(t, p.CheckVolume(tx, "volume of mc"))
		require.ErrorIs(t, p.CheckVolume(tx, "volume of other"), v1.ErrVolumeNotFound)
		o, err := store.Tokens.Get(tx, p.TokenID)
		require.NotContains(t, o.Spec.Hash, strings.TrimPrefix(secret.Reveal(), "berth_"))
		require.NoError(t, err)
	}
	c.forward(expires.Sub(c.now()) - 1)
	as(t, s, secret)
	c.forward(1)
	_, err = auth.Authenticate(s, inForce(configured), secret.Reveal())
	require.Equal(t, auth.ErrUnauthorized, err, "expired")
}

func TestAuthenticateRefuses(t *testing.T) {
	s, _ := clockedStore(t)
	good := mint(t, s, auth.Grant{}).Reveal()
	for _, secret := range []string{"", "berth_", configured.Reveal() + "0", strings.ToUpper(good), good[:37], good + " ",
		"other" + good[5:], "berth_11111111111111111111111111111111"} {
		_, err := auth.Authenticate(s, inForce(configured), secret)
		require.Equal(t, auth.ErrUnauthorized, err, secret)
	}
	_, err := auth.Authenticate(s, inForce(""), "")
	require.Equal(t, auth.ErrUnauthorized, err, "no configured token is nobody's")
	require.Equal(t, v1.Scopes(), as(t, s, configured).Scopes)
}

func TestMintedTokenWithinMinter(t *testing.T) {
	s, _ := clockedStore(t)
	containers(t, s, "a", "b", "c")
	parent := mint(t, s, auth.Grant{TTL: time.Minute, Scopes: []v1.Scope{v1.ScopeRead, v1.ScopeFiles}})
	minter := as(t, s, parent)
	secret, expires, err := auth.Mint(s, inForce(configured), minter, auth.Grant{TTL: time.Hour})
	require.NoError(t, err)
	require.Equal(t, minter.ExpiresAt, expires)
	got := as(t, s, secret)
	require.Equal(t, minter.Scopes, got.Scopes)
	limited := as(t, s, mint(t, s, auth.Grant{Containers: []string{"a", "b"}}))
	require.Equal(t, v1.TenantScopes(), limited.Scopes, "a token limited to containers is no administrator's")
	require.Equal(t, []string{"a", "b"}, limited.Containers())
	_, _, err = auth.Mint(s, inForce(configured), minter, auth.Grant{Scopes: []v1.Scope{v1.ScopePower}})
	require.Equal(t, auth.ErrScope, err)
	_, _, err = auth.Mint(s, inForce(configured), as(t, s, configured), auth.Grant{Containers: []string{"a", "none"}})
	require.Equal(t, v1.Errorf(v1.ContainerNotFound, "containers[1]: there is no container none"), err)
	once := mintWith(t, s, mint(t, s, auth.Grant{SingleUse: true}), auth.Grant{})
	require.True(t, as(t, s, once).SingleUse, "one use is all that its holder was given")
}

// TestTokenDepth mints each token with the one before.
func TestTokenDepth(t *testing.T) {
	s, _ := clockedStore(t)
	line := []v1.Secret{configured}
	for range 8 {
		line = append(line, mintWith(t, s, line[len(line)-1], auth.Grant{}))
	}
	_, _, err := auth.Mint(s, inForce(configured), as(t, s, line[8]), auth.Grant{})
	require.ErrorIs(t, err, &v1.Error{Code: v1.TooManyTokens})
	require.NoError(t, auth.Revoke(s, as(t, s, line[4]).TokenID))
	for i, secret := range line {
		_, err := auth.Authenticate(s, inForce(configured), secret.Reveal())
		require.Equal(t, i >= 4, err != nil, i)
	}
	require.Len(t, list(t, s), 3)
}

func TestMintedTokensAreBounded(t *testing.T) {
	s, _ := clockedStore(t)
	first := mint(t, s, auth.Grant{})
	second := mintWith(t, s, first, auth.Grant{})
	for range 999 {
		mintWith(t, s, second, auth.Grant{})
	}
	for _, minter := range []v1.Secret{first, second} {
		_, _, err := auth.Mint(s, inForce(configured), as(t, s, minter), auth.Grant{})
		require.ErrorIs(t, err, &v1.Error{Code: v1.TooManyTokens})
	}
	mintWith(t, s, mint(t, s, auth.Grant{}), auth.Grant{})
}

func TestRotationEndsMintedTokens(t *testing.T) {
	s, _ := clockedStore(t)
	secret := mint(t, s, auth.Grant{})
	_, err := auth.Authenticate(s, inForce("berth_11111111111111111111111111111111"), secret.Reveal())
	require.Equal(t, auth.ErrUnauthorized, err)
	old := as(t, s, configured)
	_, _, err = auth.Mint(s, inForce("berth_11111111111111111111111111111111"), old, auth.Grant{})
	require.ErrorIs(t, err, auth.ErrUnauthorized)
}

// TestTokenWithoutIssuer: a token of an older berth has no issuer and is invalid.
func TestTokenWithoutIssuer(t *testing.T) {
	s, c := clockedStore(t)
	secret := auth.NewSecret()
	require.NoError(t, s.Update(func(tx *store.Tx) error {
		return store.Tokens.Create(tx, secret.Fingerprint(), v1.TokenSpec{Hash: secret.Hash(), Scopes: v1.Scopes(), ExpiresAt: c.now().Add(time.Hour)})
	}))
	_, err := auth.Authenticate(s, inForce(configured), secret.Reveal())
	require.Equal(t, auth.ErrUnauthorized, err)
}

func TestSpendConcurrently(t *testing.T) {
	s, _ := clockedStore(t)
	secret := mint(t, s, auth.Grant{SingleUse: true})
	p := as(t, s, secret)
	as(t, s, secret) // does not spend it
	var won atomic.Int32
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if err := auth.Spend(s, p); err == nil {
				won.Add(1)
			} else if err != auth.ErrUnauthorized {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, won.Load())
	_, err := auth.Authenticate(s, inForce(configured), secret.Reveal())
	require.Equal(t, auth.ErrUnauthorized, err)
	require.Len(t, list(t, s), 1, "what it opened can be revoked")
	require.NoError(t, auth.Forget(s, p))
	require.Empty(t, list(t, s))
}

// TestChildOfSpentToken: a token stays valid when its parent is spent.
func TestChildOfSpentToken(t *testing.T) {
	s, _ := clockedStore(t)
	secret := mint(t, s, auth.Grant{SingleUse: true})
	p := as(t, s, secret)
	require.NoError(t, auth.Spend(s, p))
	child, _, err := auth.Mint(s, inForce(configured), p, auth.Grant{TTL: time.Hour})
	require.NoError(t, err)
	require.NoError(t, auth.Forget(s, p))
	as(t, s, child)
	require.NoError(t, auth.Revoke(s, p.TokenID))
	_, err = auth.Authenticate(s, inForce(configured), child.Reveal())
	require.Equal(t, auth.ErrUnauthorized, err)
}

func TestSpendExpired(t *testing.T) {
	s, c := clockedStore(t)
	p := as(t, s, mint(t, s, auth.Grant{SingleUse: true}))
	c.forward(time.Hour)
	require.ErrorIs(t, auth.Spend(s, p), auth.ErrUnauthorized)
}

func TestListAndRevoke(t *testing.T) {
	s, c := clockedStore(t)
	mint(t, s, auth.Grant{TTL: time.Minute})
	kept := mint(t, s, auth.Grant{})
	require.Len(t, list(t, s), 2)
	c.forward(time.Minute)
	require.Len(t, list(t, s), 1)
	require.NoError(t, auth.Revoke(s, list(t, s)[0].Meta.ID))
	require.Empty(t, list(t, s))
	_, err := auth.Authenticate(s, inForce(configured), kept.Reveal())
	require.Equal(t, auth.ErrUnauthorized, err)
	require.ErrorIs(t, auth.Revoke(s, "none"), &v1.Error{Code: v1.TokenNotFound})
}

// TestTokenOfAnEarlierContainer: a token is bound to one creation of a container, not to a later one of its id.
func TestTokenOfAnEarlierContainer(t *testing.T) {
	s, _ := clockedStore(t)
	containers(t, s, "mc", "other")
	secret := mint(t, s, auth.Grant{Containers: []string{"mc", "other"}})
	before := as(t, s, secret)
	require.Equal(t, []string{"mc", "other"}, before.Containers())
	mc, earlier := before.Bound[0], v1.ContainerRef{ID: "mc", UID: "earlier"}
	sees := func(p auth.Principal, ref v1.ContainerRef) bool {
		direct := p.CanSee(v1.Event{Container: ref.ID, UID: ref.UID})
		require.Equal(t, direct, p.CanSee(v1.Event{Container: "third", Users: []v1.ContainerRef{ref}}), "an event of its volume too")
		return direct
	}
	require.True(t, sees(before, mc))
	require.False(t, sees(before, earlier))
	require.NoError(t, s.Update(func(tx *store.Tx) error { return store.Containers.Purge(tx, "mc") }))
	containers(t, s, "mc")
	verified, err := before.Verify(s.Read(), inForce(configured))
	require.NoError(t, err)
	found, err := auth.Find(s.Read(), inForce(configured), before.TokenID)
	require.NoError(t, err)
	for _, now := range []auth.Principal{as(t, s, secret), verified, found} {
		require.Equal(t, []string{"other"}, now.Containers())
		require.False(t, now.CanAccess("mc"))
		require.False(t, sees(now, mc), "it is deleted")
		require.ErrorIs(t, now.CheckVolume(s.Read(), "volume of mc"), v1.ErrVolumeNotFound)
	}
}

func list(t *testing.T, s *store.Store) (tokens []v1.Token) {
	t.Helper()
	tx := s.Read()
	valid := auth.Listed(tx, inForce(configured))
	tokens = slices.DeleteFunc(store.Tokens.List(tx), func(o v1.Token) bool { return !valid(o) })
	return tokens
}
