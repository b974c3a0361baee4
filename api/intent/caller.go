package intent

import (
	"slices"
	"time"

	v1 "berth/api/v1"
)

// The refusals of a token.
var (
	ErrUnauthorized = &v1.Error{Code: "unauthorized", Message: "Missing or invalid authorization token"}
	ErrScope        = &v1.Error{Code: "scope_denied", Message: "Token scope does not allow this operation"}
)

// Caller is who asks: what the token of a request may do.
type Caller struct {
	TokenID    string     // empty: the configured token
	Scopes     []v1.Scope // never empty
	Containers []string   // empty: all
	ExpiresAt  time.Time  // zero: never
	SingleUse  bool
}

// Administrator is the caller with the configured token.
func Administrator() Caller { return Caller{Scopes: v1.Scopes} }

// May says whether the caller has a scope.
func (c Caller) May(s v1.Scope) bool {
	return slices.Contains(c.Scopes, v1.ScopeAdmin) || slices.Contains(c.Scopes, s)
}

// Limited says whether the caller may see some containers only.
func (c Caller) Limited() bool { return len(c.Containers) > 0 }

// Sees says whether a container exists as far as the caller is told.
func (c Caller) Sees(container string) bool {
	return !c.Limited() || slices.Contains(c.Containers, container)
}
