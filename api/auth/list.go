package auth

import (
	"errors"

	v1 "berth/api/v1"
	"berth/store"
)

// Listed returns a function that reports whether a token is valid, and so is shown in a
// list.
func Listed(tx *store.Tx, c v1.AuthorizationConfig) func(v1.Token) bool {
	issuer := c.Token.Fingerprint()
	return func(o v1.Token) bool {
		_, _, err := valid(tx, o.Meta.ID, issuer)
		return err == nil
	}
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
