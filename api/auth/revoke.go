package auth

import (
	"errors"

	v1 "berth/api/v1"
	"berth/store"
)

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
