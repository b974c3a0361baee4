package intent

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "berth/api/v1"
	"berth/store"
)

// TokenRequest is what a minted token is to be allowed.
type TokenRequest struct {
	TTL        *string // nil: an hour
	SingleUse  bool
	Scopes     []v1.Scope    // nil: the minter's
	Containers []string      // nil: the minter's
	MaxTTL     time.Duration // that the operator permits
}

const defaultTTL = time.Hour

// CheckToken notes the faults of a request, and returns how long the token is to live.
func CheckToken(f *Faults, r TokenRequest) time.Duration {
	checkScopes(f, r.Scopes)
	checkContainers(f, r.Containers)
	return checkTTL(f, r.TTL, r.MaxTTL)
}

// MintToken makes a token that is allowed no more and lives no longer than its
// minter. The secret is told once, here.
func MintToken(s *store.Store, minter Caller, r TokenRequest) (v1.Secret, time.Time, error) {
	var f Faults
	ttl := CheckToken(&f, r)
	if err := f.Err(); err != nil {
		return "", time.Time{}, err
	}
	spec := v1.TokenSpec{RemoveOnUse: r.SingleUse, Scopes: r.Scopes, Containers: r.Containers}
	if spec.Scopes == nil {
		spec.Scopes = minter.Scopes
	}
	if spec.Containers == nil {
		spec.Containers = minter.Containers
	}
	if err := within(minter, spec); err != nil {
		return "", time.Time{}, err
	}
	secret := NewSecret()
	id, hash := digest(secret.Reveal())
	spec.Hash = hash
	err := s.Update(func(tx *store.Tx) error {
		spec.ExpiresAt = expiry(tx.Now(), ttl, minter.ExpiresAt)
		return store.Tokens.Create(tx, id, spec)
	})
	return secret, spec.ExpiresAt, err
}

// NewSecret is a fresh access token: berth_ and 128 random bits in hex.
func NewSecret() v1.Secret {
	var b [16]byte
	rand.Read(b[:]) // never fails, as its documentation says
	return v1.Secret("berth_" + hex.EncodeToString(b[:]))
}

// expiry is never after the minter's.
func expiry(now time.Time, ttl time.Duration, minter time.Time) time.Time {
	end := now.UTC().Add(ttl)
	if !minter.IsZero() && minter.Before(end) {
		return minter
	}
	return end
}

func checkTTL(f *Faults, text *string, longest time.Duration) time.Duration {
	if text == nil {
		return min(defaultTTL, longest)
	}
	ttl, err := v1.ParseDuration(*text)
	switch {
	case err != nil:
		f.Add("ttl", "must be a duration such as 90s, 1h30m or 7d")
	case ttl < time.Second:
		f.Add("ttl", "must be at least 1s")
	case ttl > longest:
		f.Add("ttl", "must be at most %s", v1.Duration(longest))
	}
	return ttl
}

func checkScopes(f *Faults, want []v1.Scope) {
	if want != nil && len(want) == 0 {
		f.Add("scopes", "must name at least one scope")
	}
	for i, scope := range want {
		if !slices.Contains(v1.Scopes, scope) {
			f.Add(fmt.Sprintf("scopes[%d]", i), "must be one of read, power, console, files, network, admin")
		}
	}
}

func checkContainers(f *Faults, want []string) {
	if want != nil && len(want) == 0 {
		f.Add("containers", "must name at least one container")
	}
	for i, id := range want {
		checkID(f, fmt.Sprintf("containers[%d]", i), id)
	}
}

// within refuses what goes beyond the minter.
func within(minter Caller, spec v1.TokenSpec) error {
	for _, scope := range spec.Scopes {
		if !minter.May(scope) {
			return ErrScope
		}
	}
	for _, id := range spec.Containers {
		if !minter.Sees(id) {
			return v1.ErrContainerNotFound
		}
	}
	return nil
}

// digest is a token's id and the hash that is kept of it.
func digest(secret string) (id, hash string) {
	sum := sha256.Sum256([]byte(secret))
	hash = hex.EncodeToString(sum[:])
	return hash[:32], hash
}

// Authenticate tells who presents secret; admin is the configured token. It
// does not spend a token of a single use: that is Spend's.
func Authenticate(s *store.Store, admin v1.Secret, secret string) (Caller, error) {
	id, hash := digest(secret)
	if _, want := digest(admin.Reveal()); admin != "" && same(hash, want) {
		return Administrator(), nil
	}
	if !v1.IsToken(secret) {
		return Caller{}, ErrUnauthorized
	}
	var c Caller
	err := s.View(func(tx *store.Tx) (err error) {
		c, err = caller(tx, id, hash)
		return err
	})
	return c, err
}

// caller is who token id stands for, if its hash is right and it has not expired.
func caller(tx *store.Tx, id, hash string) (Caller, error) {
	o, err := store.Tokens.Get(tx, id)
	if errors.Is(err, store.ErrNotFound) {
		return Caller{}, ErrUnauthorized
	}
	if err != nil {
		return Caller{}, err
	}
	if !same(hash, o.Spec.Hash) || o.Meta.Deleted || !tx.Now().Before(o.Spec.ExpiresAt) {
		return Caller{}, ErrUnauthorized
	}
	return Caller{TokenID: id, Scopes: o.Spec.Scopes, Containers: o.Spec.Containers,
		ExpiresAt: o.Spec.ExpiresAt, SingleUse: o.Spec.RemoveOnUse}, nil
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// Spend uses up a token of a single use. Of any number of callers with the same
// token one succeeds, and the others are unauthorized. Other tokens are not touched.
func Spend(s *store.Store, c Caller) error {
	if !c.SingleUse {
		return nil
	}
	return s.Update(func(tx *store.Tx) error {
		o, err := store.Tokens.Get(tx, c.TokenID)
		if errors.Is(err, store.ErrNotFound) || err == nil && !tx.Now().Before(o.Spec.ExpiresAt) {
			return ErrUnauthorized
		}
		if err != nil {
			return err
		}
		return store.Tokens.Purge(tx, c.TokenID)
	})
}

// ListTokens returns the tokens that have not expired.
func ListTokens(tx *store.Tx) ([]v1.Token, error) {
	list, err := store.Tokens.List(tx)
	return slices.DeleteFunc(list, func(o v1.Token) bool {
		return o.Meta.Deleted || !tx.Now().Before(o.Spec.ExpiresAt)
	}), err
}

// RevokeToken makes a token invalid at once; the code TokenNotFound says that
// there is none.
func RevokeToken(s *store.Store, id string) error {
	return s.Update(func(tx *store.Tx) error {
		if _, err := store.Tokens.Get(tx, id); errors.Is(err, store.ErrNotFound) {
			return v1.Errorf(v1.TokenNotFound, "Token not found")
		} else if err != nil {
			return err
		}
		return store.Tokens.Purge(tx, id)
	})
}
