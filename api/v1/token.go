package v1

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"time"
)

// Token is a minted access token. Its id is the first 32 hex digits of the
// SHA-256 of the secret; the secret itself is never stored.
type Token = Object[TokenSpec, TokenStatus]

// TokenSpec is the identity and the permissions of a token.
type TokenSpec struct {
	Hash string `json:"hash"`           // hex SHA-256 of the secret
	Name string `json:"name,omitempty"` // that its minter gave it
	// fingerprint of the configured token that it descends from; empty: minted by an older version, and invalid
	Issuer      string         `json:"issuer,omitempty"`
	Parent      string         `json:"parent,omitempty"` // id of the token that minted it; empty: the configured token
	ExpiresAt   time.Time      `json:"expires_at"`
	RemoveOnUse bool           `json:"remove_on_use,omitempty"`
	Spent       bool           `json:"spent,omitempty"` // its only use has begun
	Scopes      []Scope        `json:"scopes"`
	Containers  []ContainerRef `json:"container_refs,omitempty"` // empty: all
	OnBehalfOf  string         `json:"on_behalf_of,omitempty"`   // end user for whom it acts
	Address     string         `json:"address,omitempty"`        // of that user's client; empty: that of the connection
	// public keys that may log in with SFTP instead of the secret, as type and base64
	SSHKeys []string `json:"ssh_keys,omitempty"`
	// tokens that it minted; for a child of the configured token, those of its descendants too
	Minted int `json:"minted,omitempty"`
}

// Keys returns the hashes of its public keys.
func (s TokenSpec) Keys() (hashes []string) {
	for _, key := range s.SSHKeys {
		hashes = append(hashes, Secret(key).Hash())
	}
	return hashes
}

// ContainerRef refers to one creation of a container.
type ContainerRef struct {
	ID  string `json:"id"`  // internal_id
	UID string `json:"uid"` // Meta.UID
}

// TokenRequest describes a token to mint. It never allows more, or is valid for longer, than
// the token that mints it.
type TokenRequest struct {
	Name        string   `json:"name,omitempty"`
	TTL         *string  `json:"ttl,omitempty"` // such as 90s, 8h or 7d; nil: 1h
	RemoveOnUse bool     `json:"remove_on_use,omitempty"`
	Scopes      []Scope  `json:"scopes,omitempty"`     // nil: those of the minting token
	Containers  []string `json:"containers,omitempty"` // nil: all
	OnBehalfOf  string   `json:"on_behalf_of,omitempty"`
	Address     string   `json:"address,omitempty"`
	SSHKeys     []string `json:"ssh_keys,omitempty"` // lines of an authorized_keys file that may log in with SFTP
}

// NewToken is a token that was minted, or a ticket. The secret is not returned again.
type NewToken struct {
	Token     string `json:"token"`
	ID        string `json:"id"`
	ExpiresAt string `json:"expires_at"` // RFC 3339
}

// TokenView is a token without its secret, as clients receive it.
type TokenView struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Scopes      []Scope    `json:"scopes"`
	Containers  []string   `json:"containers"` // empty: all
	OnBehalfOf  string     `json:"on_behalf_of,omitempty"`
	Address     string     `json:"address,omitempty"`
	SSHKeys     []string   `json:"ssh_keys"`   // fingerprints
	ExpiresAt   string     `json:"expires_at"` // RFC 3339
	RemoveOnUse bool       `json:"remove_on_use"`
	Spent       bool       `json:"spent"`  // the single use has begun
	Parent      NullString `json:"parent"` // id of the token that minted it; empty: the configured one
}

// Self is what the token of a request allows.
type Self struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Scopes      []Scope    `json:"scopes"`
	Containers  []string   `json:"containers"` // nil: all
	ExpiresAt   NullString `json:"expires_at"` // RFC 3339; empty: never
	RemoveOnUse bool       `json:"remove_on_use"`
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
	ScopeArrive  Scope = "arrive" // containers that are moved here from another node
)

// TenantScopes returns the scopes that a token may have which is limited to containers: none
// of them changes a spec, a port or a token, and none acts for others.
func TenantScopes() []Scope { return []Scope{ScopeRead, ScopePower, ScopeConsole, ScopeFiles} }

// Scopes returns all scopes.
func Scopes() []Scope {
	return []Scope{ScopeRead, ScopePower, ScopeConsole, ScopeFiles, ScopeNetwork, ScopeAdmin, ScopeArrive}
}

// Secret is a text that no log or message may show: it prints as ***. Its JSON and YAML
// forms are masked too; Reveal returns the value.
type Secret string

const masked = "***"

// String hides the value.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return masked
}

// GoString hides the value.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the value.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Reveal returns the value.
func (s Secret) Reveal() string { return string(s) }

// Hash returns the hex SHA-256 of the value.
func (s Secret) Hash() string {
	sum := sha256.Sum256([]byte(s))
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], sum[:])
	return string(text[:])
}

// Fingerprint returns the first 32 hex digits of Hash, which identify the secret
// and do not reveal it.
func (s Secret) Fingerprint() string { return FingerprintOf(s.Hash()) }

// FingerprintOf returns the Fingerprint of the secret with a Hash.
func FingerprintOf(hash string) string { return hash[:32] }

// misplacedToken matches a token that a user has put into another field.
var misplacedToken = regexp.MustCompile(`berth_[0-9a-f]+`)

// MaskTokens returns text with three asterisks in the place of each token.
func MaskTokens(text string) string { return misplacedToken.ReplaceAllString(text, masked) }
