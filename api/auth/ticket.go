package auth

import (
	"time"

	v1 "berth/api/v1"
	"berth/store"
)

// ticketTTL is how long a ticket is valid. It only has to reach the server again.
const ticketTTL = 30 * time.Second

// Ticket creates a token for one request with the rights of a principal, for a browser:
// the address of a WebSocket or of a download has to have a token, and should not have
// one that is worth to be kept. It returns the secret, which is not stored, and the
// time of expiry. Tickets do not count as minted tokens: a page needs one for each
// connection, and they are gone after a minute. The errors for clients are ErrScope,
// ErrRevoked, ErrExpired and the code TooManyTokens.
func Ticket(s store.Writer, c v1.AuthorizationConfig, p Principal) (v1.Secret, time.Time, error) {
	if p.SingleUse {
		return "", time.Time{}, ErrScope // otherwise a single-use token would have many uses
	}
	secret := NewSecret()
	spec := v1.TokenSpec{Hash: secret.Hash(), Name: p.Name, Issuer: c.Token.Fingerprint(), Parent: p.TokenID,
		RemoveOnUse: true, Scopes: p.Scopes}
	err := s.Update(func(tx *store.Tx) error {
		p, err := p.Verify(tx, c)
		if err != nil {
			return err
		}
		if p.TokenID != "" {
			if err := checkDepth(tx, p); err != nil {
				return err
			}
		}
		spec.Containers = p.Bound
		spec.ExpiresAt = expiry(tx.Now(), ticketTTL, p.ExpiresAt)
		return store.Tokens.Create(tx, secret.Fingerprint(), spec)
	})
	return secret, spec.ExpiresAt, err
}
