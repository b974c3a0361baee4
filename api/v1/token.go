package v1

import "time"

// Token is a minted access token. Its id is the first 32 hex digits of the
// SHA-256 of the secret; the secret itself is never stored.
type Token = Object[TokenSpec, TokenStatus]

// TokenSpec is what a token may do.
type TokenSpec struct {
	Hash        string         `json:"hash"`             // hex SHA-256 of the secret
	Issuer      string         `json:"issuer,omitempty"` // fingerprint of the configured token that it descends from; empty: made by an older berth, and not valid
	Parent      string         `json:"parent,omitempty"` // id of the token that it was minted with; empty: the configured token
	ExpiresAt   time.Time      `json:"expires_at"`
	RemoveOnUse bool           `json:"remove_on_use,omitempty"`
	Spent       bool           `json:"spent,omitempty"` // its single use has begun
	Scopes      []Scope        `json:"scopes"`
	Containers  []ContainerRef `json:"container_refs,omitempty"` // empty: all
	Minted      int            `json:"minted,omitempty"`         // tokens that were minted with it; of one that the configured token minted, those minted with them too
}

// ContainerRef names one creation of a container.
type ContainerRef struct {
	ID  string `json:"id"`  // internal_id
	UID string `json:"uid"` // Meta.UID
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
