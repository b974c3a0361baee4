package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	v1 "berth/api/v1"
)

// TokenRequest describes a token to create. It never allows more, or is valid for
// longer, than the token of the client.
type TokenRequest struct {
	Name       string     `json:"name,omitempty"`
	TTL        string     `json:"ttl,omitempty"` // such as 90s, 8h or 7d; empty: 1h
	SingleUse  bool       `json:"remove_on_use"`
	Scopes     []v1.Scope `json:"scopes,omitempty"`     // empty: those of the client's token
	Containers []string   `json:"containers,omitempty"` // empty: all
	SSHKeys    []string   `json:"ssh_keys,omitempty"`   // lines of an authorized_keys file that may log in with SFTP
}

// NewToken is a token that was created. The daemon does not return the secret again.
type NewToken struct {
	ID        string `json:"id"`
	Token     string `json:"token"`
	ExpiresAt string `json:"expires_at"` // RFC 3339
}

// Token is a token without its secret.
type Token struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Scopes     []v1.Scope `json:"scopes"`
	Containers []string   `json:"containers"` // empty: all
	SSHKeys    []string   `json:"ssh_keys"`   // fingerprints
	ExpiresAt  string     `json:"expires_at"` // RFC 3339
	SingleUse  bool       `json:"remove_on_use"`
	Spent      bool       `json:"spent"`  // the single use has begun
	Parent     string     `json:"parent"` // id of the token that created it; empty: the configured one
}

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

// All yields the tokens of List, and gets them page by page. It ends with the first
// error.
func (s Tokens) All(ctx context.Context) iter.Seq2[Token, error] {
	return pages[Token](ctx, s.c, "/auth/tokens", "tokens", nil)
}

// Revoke revokes a token and the tokens that were created with it.
func (s Tokens) Revoke(ctx context.Context, id string) error {
	return s.c.Call(ctx, http.MethodDelete, "/auth/tokens/"+url.PathEscape(id), nil, nil)
}
