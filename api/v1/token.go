package v1

import "time"

// Token is a minted access token. Its id is the first 32 hex digits of the
// SHA-256 of the secret; the secret itself is never stored.
type Token = Object[TokenSpec, TokenStatus]

// TokenSpec is what a token may do.
type TokenSpec struct {
	Hash        string    `json:"hash"` // hex SHA-256 of the secret
	ExpiresAt   time.Time `json:"expires_at"`
	RemoveOnUse bool      `json:"remove_on_use,omitempty"`
	Scopes      []Scope   `json:"scopes"`
	Containers  []string  `json:"containers,omitempty"` // empty: all
}

// TokenStatus is empty: nothing is observed about a token.
type TokenStatus struct{}

// Scope is one kind of operation.
type Scope string

// The scopes. Admin includes all others.
const (
	ScopeRead    Scope = "read"
	ScopePower   Scope = "power"
	ScopeConsole Scope = "console"
	ScopeFiles   Scope = "files"
	ScopeNetwork Scope = "network"
	ScopeAdmin   Scope = "admin"
)

// Scopes lists every scope.
var Scopes = []Scope{ScopeRead, ScopePower, ScopeConsole, ScopeFiles, ScopeNetwork, ScopeAdmin}
