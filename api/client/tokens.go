package client

import (
	"context"
	"net/http"
	"net/url"

	v1 "berth/api/v1"
)

// Tokens are the calls for access tokens.
type Tokens struct{ c *Client }

// Create creates a token.
func (s Tokens) Create(ctx context.Context, r v1.TokenRequest) (t v1.NewToken, err error) {
	err = s.c.Call(ctx, http.MethodPost, "/auth/tokens", r, &t)
	return t, err
}

// List returns the tokens that are valid, except for the configured one.
func (s Tokens) List(ctx context.Context) ([]v1.TokenView, error) {
	return list[[]v1.TokenView](ctx, s.c, "/auth/tokens", "tokens")
}

// Revoke revokes a token and the tokens that were created with it.
func (s Tokens) Revoke(ctx context.Context, id string) error {
	return s.c.Call(ctx, http.MethodDelete, "/auth/tokens/"+url.PathEscape(id), nil, nil)
}
