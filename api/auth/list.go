package auth

import (
	"errors"
	"slices"

	v1 "berth/api/v1"
	"berth/store"
)

// List returns the valid tokens, including the spent ones.
func List(tx *store.Tx, c v1.AuthorizationConfig) ([]v1.Token, error) {
	list, err := store.Tokens.List(tx)
	if err != nil {
		return nil, err
	}
	issuer := c.Token.Fingerprint()
	return slices.DeleteFunc(list, func(o v1.Token) bool {
		_, _, err := valid(tx, o.Meta.ID, issuer)
		return err != nil
	}), nil
}

// Revoke makes a token and all tokens minted with it invalid. It returns an error of
// the code TokenNotFound if the token does not exist.
func Revoke(s *store.Store, id string) error {
	return s.MustUpdate(func(tx *store.Tx) error {
		if _, err := store.Tokens.Get(tx, id); errors.Is(err, store.ErrNotFound) {
			return v1.Errorf(v1.TokenNotFound, "Token not found")
		} else if err != nil {
			return err
		}
		return store.Tokens.Purge(tx, id)
	})
}
