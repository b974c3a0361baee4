package client

import (
	"context"
	"net/http"
	"net/url"

	v1 "berth/api/v1"
)

// The types of tokens are those of the API.

type (
	// TokenRequest is v1.TokenRequest.
	TokenRequest = v1.TokenRequest
	// NewToken is v1.NewToken.
	NewToken = v1.NewToken
	// Token is v1.TokenView.
	Token = v1.TokenView
)

// Tokens are the calls for access tokens.
type Tokens struct{ c *Client }

// Create creates a token.
func (s Tokens) Create(ctx context.Context, r TokenRequest) (t NewToken, err error) {
	err = s.c.Call(ctx, http.MethodPost, "/auth/tokens", r, &t)
	return t, err
}

// List returns the tokens that are valid, except for the configured one.
func (s Tokens) List(ctx context.Context) ([]Token, error) {
	var body struct {
		Tokens []Token `json:"tokens"`
	}
	err := s.c.get(ctx, "/auth/tokens", &body)
	return body.Tokens, err
}

// Revoke revokes a token and the tokens that were created with it.
func (s Tokens) Revoke(ctx context.Context, id string) error {
	return s.c.Call(ctx, http.MethodDelete, "/auth/tokens/"+url.PathEscape(id), nil, nil)
}
