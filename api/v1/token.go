package v1

import "time"

// Token is a minted access token. Its id is the first 32 hex digits of the
// SHA-256 of the secret; the secret itself is never stored.
type Token = Object[TokenSpec, TokenStatus]

// TokenSpec is the identity and the permissions of a token.
type TokenSpec struct {
	Hash        string         `json:"hash"`             // hex SHA-256 of the secret
	Name        string         `json:"name,omitempty"`   // that its minter gave it
	Issuer      string         `json:"issuer,omitempty"` // fingerprint of the configured token that it descends from; empty: minted by an older version, and invalid
	Parent      string         `json:"parent,omitempty"` // id of the token that minted it; empty: the configured token
	ExpiresAt   time.Time      `json:"expires_at"`
	RemoveOnUse bool           `json:"remove_on_use,omitempty"`
	Spent       bool           `json:"spent,omitempty"` // its only use has begun
	Scopes      []Scope        `json:"scopes"`
	Containers  []ContainerRef `json:"container_refs,omitempty"` // empty: all
	SSHKeys     []string       `json:"ssh_keys,omitempty"`       // public keys that may log in with SFTP instead of the secret, as type and base64
	Minted      int            `json:"minted,omitempty"`         // tokens that it minted; for a child of the configured token, those of its descendants too
}

// ContainerRef refers to one creation of a container.
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

// TenantScopes returns the scopes that a token may have which is limited to containers: none
// of them changes a spec, a port or a token, and none acts for others.
func TenantScopes() []Scope { return []Scope{ScopeRead, ScopePower, ScopeConsole, ScopeFiles} }

// Scopes returns all scopes.
func Scopes() []Scope {
	return []Scope{ScopeRead, ScopePower, ScopeConsole, ScopeFiles, ScopeNetwork, ScopeAdmin}
}
