package v1

import (
	"crypto/sha256"
	"encoding/hex"
)

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
