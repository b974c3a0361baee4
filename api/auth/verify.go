package auth

import (
	"crypto/subtle"
	"errors"

	v1 "berth/api/v1"
	"berth/store"
)

// maxDepth bounds the length of a line of tokens, each minted with the one before.
const maxDepth = 8

// Authenticate returns the principal of a secret, or ErrUnauthorized. It does not
// spend a single-use token; see Spend.
func Authenticate(s *store.Store, c v1.AuthorizationConfig, secret string) (Principal, error) {
	hash, configured := v1.Secret(secret).Hash(), c.Token.Hash()
	issuer := v1.FingerprintOf(configured)
	presented := c.Token != "" && same(hash, configured)
	if presented || !c.Enabled {
		return administrator(presented, issuer), nil
	}
	if !v1.IsToken(secret) {
		return Principal{}, ErrUnauthorized
	}
	tx := s.Read()
	o, root, err := valid(tx, v1.Secret(secret).Fingerprint(), issuer)
	if errors.Is(err, ErrUnauthorized) || err == nil && (!same(hash, o.Spec.Hash) || o.Spec.Spent) {
		return Principal{}, ErrUnauthorized
	}
	if err != nil {
		return Principal{}, err
	}
	return principalOf(o, root).resolve(tx)
}

func principalOf(o v1.Token, root string) Principal {
	return Principal{TokenID: o.Meta.ID, Name: o.Spec.Name, Scopes: o.Spec.Scopes, ExpiresAt: o.Spec.ExpiresAt, SingleUse: o.Spec.RemoveOnUse,
		Bound: o.Spec.Containers, onBehalfOf: o.Spec.OnBehalfOf, address: o.Spec.Address, issuer: o.Spec.Issuer, root: root}
}

// Verify returns p as it is now, or ErrRevoked or ErrExpired. A token that p
// itself has spent is valid.
func (p Principal) Verify(tx *store.Tx, c v1.AuthorizationConfig) (Principal, error) {
	issuer := c.Token.Fingerprint()
	if p.TokenID == "" {
		if c.Enabled && p.issuer != issuer {
			return p, ErrRevoked
		}
		return p, nil
	}
	o, root, err := valid(tx, p.TokenID, issuer)
	if err != nil {
		return p, err
	}
	now := principalOf(o, root)
	now.ticket, now.SingleUse = p.ticket, now.SingleUse || p.IsTicket()
	return now.resolve(tx)
}

// Find returns the principal of a token, or ErrRevoked or ErrExpired.
func Find(tx *store.Tx, c v1.AuthorizationConfig, id string) (Principal, error) {
	return Principal{TokenID: id}.Verify(tx, c)
}

// valid returns the token id if it is valid, and the first minted token in its
// line of parents. Otherwise it returns ErrRevoked or ErrExpired. It does not check
// the expiry of parents: no token expires after its parent.
func valid(tx *store.Tx, id, issuer string) (o v1.Token, root string, err error) {
	if o, err = find(tx, id); err != nil {
		return o, "", err
	}
	if !tx.Now().Before(o.Spec.ExpiresAt) {
		return o, "", ErrExpired
	}
	if o.Spec.Issuer == "" || !same(o.Spec.Issuer, issuer) {
		return o, "", ErrRevoked
	}
	root = id
	for parent, depth := o.Spec.Parent, 1; parent != ""; depth++ {
		above, err := find(tx, parent)
		if err != nil {
			return o, "", err
		}
		if depth >= maxDepth {
			return o, "", ErrRevoked
		}
		root, parent = parent, above.Spec.Parent
	}
	return o, root, nil
}

// find returns a token, or ErrRevoked if it is not stored.
func find(tx *store.Tx, id string) (v1.Token, error) {
	o, err := store.Tokens.Get(tx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && o.Meta.Deleted {
		return o, ErrRevoked
	}
	return o, err
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// Spend spends a single-use token. If several principals have the same token, one
// succeeds and the others get ErrUnauthorized. The record stays until Forget, so
// that the sessions of the token can be revoked. Spend ignores other tokens.
func Spend(s *store.Store, p Principal) error {
	if !p.SingleUse || p.IsTicket() {
		return nil
	}
	return s.Update(func(tx *store.Tx) error {
		o, _, err := valid(tx, p.TokenID, p.issuer)
		if err != nil {
			return err
		}
		if o.Spec.Spent {
			return ErrUnauthorized
		}
		return store.Tokens.SetSpec(tx, p.TokenID, func(spec *v1.TokenSpec) error {
			spec.Spent = true
			return nil
		})
	})
}

// Forget removes the record of a token that p has spent. The caller calls it when the
// request and its session have ended. A token that has minted others stays until it
// expires: they are invalid without it.
func Forget(s *store.Store, p Principal) error {
	if !p.SingleUse || p.IsTicket() {
		return nil
	}
	return s.Update(func(tx *store.Tx) error {
		o, err := find(tx, p.TokenID)
		switch {
		case errors.Is(err, ErrRevoked):
			return nil
		case err != nil || !o.Spec.Spent || o.Spec.Minted > 0:
			return err
		}
		return store.Tokens.Purge(tx, p.TokenID)
	})
}

// Listed returns a function that reports whether a token is valid, and so is shown in a
// list.
func Listed(tx *store.Tx, c v1.AuthorizationConfig) func(v1.Token) bool {
	issuer := c.Token.Fingerprint()
	return func(o v1.Token) bool {
		_, _, err := valid(tx, o.Meta.ID, issuer)
		return err == nil
	}
}
