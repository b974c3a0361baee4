package auth

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	v1 "berth/api/v1"
	"berth/store"
)

// maxMinted bounds the tokens minted with one token and with its descendants, in
// total. The configured token may mint any number.
const maxMinted = 1000

// Grant describes a token to be minted.
type Grant struct {
	Name       string
	TTL        time.Duration
	SingleUse  bool
	Scopes     []v1.Scope // nil: the minter's; with Containers, those of v1.TenantScopes that it has
	Containers []string   // nil: all
	SSHKeys    []string   // of CheckKeys
	OnBehalfOf string     // end user; empty: the minter's
	Address    string     // of the user's client; empty: the minter's
}

// Mint creates a token that allows no more than its minter and does not expire later.
// It returns the secret, which is not stored, and the time of expiry. The token is
// bound to the containers that exist now, not to later ones with the same
// internal_id. The errors for clients are ErrScope, ErrRevoked, ErrExpired and the codes
// ContainerNotFound and TooManyTokens.
func Mint(s store.Writer, c v1.AuthorizationConfig, minter Principal, g Grant) (v1.Secret, time.Time, error) {
	secret := NewSecret()
	spec := v1.TokenSpec{Hash: secret.Hash(), Name: g.Name, Issuer: c.Token.Fingerprint(), Parent: minter.TokenID,
		RemoveOnUse: g.SingleUse || minter.SingleUse, // otherwise a single-use token would mint one of many uses
		Scopes:      g.Scopes, SSHKeys: g.SSHKeys,
		OnBehalfOf: cmp.Or(g.OnBehalfOf, minter.onBehalfOf), Address: cmp.Or(g.Address, minter.address)}
	if spec.Scopes == nil {
		spec.Scopes = minter.Scopes
		if g.Containers != nil {
			spec.Scopes = slices.DeleteFunc(v1.TenantScopes(), func(scope v1.Scope) bool { return !minter.HasScope(scope) })
		}
	}
	if slices.ContainsFunc(spec.Scopes, func(scope v1.Scope) bool { return !minter.HasScope(scope) }) {
		return "", time.Time{}, ErrScope
	}
	err := s.Update(func(tx *store.Tx) error {
		minter, err := minter.Verify(tx, c)
		if err != nil {
			return err
		}
		if spec.Containers, err = bind(tx, g.Containers); err != nil {
			return err
		}
		if err := countMinted(tx, minter); err != nil {
			return err
		}
		spec.ExpiresAt = expiry(tx.Now(), g.TTL, minter.ExpiresAt)
		return store.Tokens.Create(tx, secret.Fingerprint(), spec)
	})
	return secret, spec.ExpiresAt, err
}

// NewSecret returns a new access token: berth_ and 128 random bits in hex.
func NewSecret() v1.Secret {
	var b [16]byte
	rand.Read(b[:]) // never fails, as its documentation says
	return v1.Secret("berth_" + hex.EncodeToString(b[:]))
}

// bind returns references to the containers that have these internal_ids now. Minting needs the
// scope admin, so that the minter may access all of them.
func bind(tx *store.Tx, ids []string) (refs []v1.ContainerRef, err error) {
	for i, id := range ids {
		o, err := store.Containers.Get(tx, id)
		if errors.Is(err, store.ErrNotFound) {
			return nil, v1.Errorf(v1.ContainerNotFound, "containers[%d]: there is no container %s", i, id)
		}
		if err != nil {
			return nil, err
		}
		refs = append(refs, v1.ContainerRef{ID: id, UID: o.Meta.UID})
	}
	return refs, nil
}

// countMinted counts a token for its minter and for the first token in the line of
// parents. It returns an error if one of them has minted too many, or if the line is
// too long.
func countMinted(tx *store.Tx, minter Principal) error {
	if minter.TokenID == "" {
		return nil
	}
	if err := checkDepth(tx, minter); err != nil {
		return err
	}
	ids := []string{minter.root}
	if minter.root != minter.TokenID {
		ids = append(ids, minter.TokenID)
	}
	for _, id := range ids {
		err := store.Tokens.SetSpec(tx, id, func(spec *v1.TokenSpec) error {
			if spec.Minted++; spec.Minted > maxMinted {
				return v1.Errorf(v1.TooManyTokens, "Token has minted %d tokens: mint with another one", maxMinted)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkDepth returns an error if a token minted with the minter would be too far from
// the first minted token in its line of parents.
func checkDepth(tx *store.Tx, minter Principal) error {
	depth := 1
	for id := minter.TokenID; id != minter.root; depth++ {
		o, err := find(tx, id)
		if err != nil {
			return err
		}
		id = o.Spec.Parent
	}
	if depth >= maxDepth {
		return v1.Errorf(v1.TooManyTokens,
			"Token is number %d in a chain of minted tokens, which is the maximum: mint with an earlier one", depth)
	}
	return nil
}

// expiry returns the time of expiry, which is not after the minter's. It is rounded up
// to a second, so that clients see the time at which the token really expires.
func expiry(now time.Time, ttl time.Duration, minter time.Time) time.Time {
	end := now.UTC().Add(ttl + time.Second - 1).Truncate(time.Second)
	if !minter.IsZero() && minter.Before(end) {
		return minter
	}
	return end
}

// Revoke makes a token and all tokens minted with it invalid. It returns an error of
// the code TokenNotFound if the token does not exist.
func Revoke(s store.Writer, id string) error {
	return s.MustUpdate(func(tx *store.Tx) error {
		if _, err := store.Tokens.Get(tx, id); errors.Is(err, store.ErrNotFound) {
			return v1.Errorf(v1.TokenNotFound, "Token not found")
		} else if err != nil {
			return err
		}
		return store.Tokens.Purge(tx, id)
	})
}
