package auth

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "berth/api/v1"
	"berth/store"
)

// Errors of a token that does not allow a request.
var (
	ErrUnauthorized = &v1.Error{Code: v1.Unauthorized, Message: "Missing or invalid authorization token"}
	ErrScope        = &v1.Error{Code: v1.ScopeDenied, Message: "Token scope does not allow this operation"}
)

// Reasons why a token is no longer valid. Both wrap ErrUnauthorized.
var (
	ErrRevoked = fmt.Errorf("token is revoked: %w", ErrUnauthorized)
	ErrExpired = fmt.Errorf("token has expired: %w", ErrUnauthorized)
)

// Principal is the sender of a request, with the rights of its token.
type Principal struct {
	TokenID    string     // empty: the configured token, or authorization is disabled
	Name       string     // of the token; empty: it has none
	Configured bool       // the configured token was presented
	Scopes     []v1.Scope // never empty
	ExpiresAt  time.Time  // zero: never
	SingleUse  bool

	// Bound holds the containers that the token was minted for; empty: all.
	Bound []v1.ContainerRef

	onBehalfOf, address string // of the user for whom the token acts; empty: it does not say

	present []string // internal_ids of Bound that are still the same containers
	issuer  string   // fingerprint of the configured token
	root    string   // id of the first minted token in the line of parents
	ticket  string   // hash of the ticket that was presented; empty: none
}

// administrator is the principal of the configured token.
func administrator(presented bool, issuer string) Principal {
	return Principal{Scopes: v1.Scopes(), Configured: presented, issuer: issuer}
}

// Root returns the id of the first minted token in the line of parents, or
// v1.Administrator.
func (p Principal) Root() string {
	if p.TokenID == "" {
		return v1.Administrator
	}
	return p.root
}

// Tenant returns whose limits the principal uses, see package limit: those of its container, by its
// uid, if it may access only some, else those of Root. The administrator's is empty.
func (p Principal) Tenant() string {
	switch {
	case p.TokenID == "":
		return ""
	case p.Restricted():
		first := slices.MinFunc(p.Bound, func(a, b v1.ContainerRef) int { return strings.Compare(a.ID, b.ID) })
		return "container " + first.UID
	}
	return "token " + p.root
}

// Maker returns whose rights a job of the principal uses after its request. uid is that of the container
// to quiesce. A token for one request leaves those of the first token in its line of parents.
func (p Principal) Maker(uid string) v1.Maker {
	switch {
	case p.TokenID == "", p.HasScope(v1.ScopeAdmin) && !p.Restricted():
		return v1.Maker{}
	case !p.SingleUse || p.IsTicket():
		return v1.Maker{TokenID: p.TokenID, UID: uid}
	case p.root != p.TokenID:
		return v1.Maker{TokenID: p.root, UID: uid}
	}
	return v1.Maker{UID: uid}
}

// IsTicket reports whether a ticket was presented.
func (p Principal) IsTicket() bool { return p.ticket != "" }

// Actor returns the principal as the actor of a request from an address, which that of its token replaces.
func (p Principal) Actor(via v1.Via, address string) v1.Actor {
	if p.TokenID == "" {
		return v1.Actor{TokenID: v1.Administrator, Name: v1.Administrator, Via: via, Address: address}
	}
	return v1.Actor{TokenID: p.TokenID, Name: p.Name, Via: via, Address: cmp.Or(p.address, address), OnBehalfOf: p.onBehalfOf}
}

// HasScope reports whether the principal has a scope.
func (p Principal) HasScope(s v1.Scope) bool {
	return slices.Contains(p.Scopes, v1.ScopeAdmin) || slices.Contains(p.Scopes, s)
}

// signalKeys are the keys that a terminal takes for signals to its processes, for the end
// of their input, or for a pause of their output: Ctrl-C, D, S, Z and \.
const signalKeys = "\x03\x04\x13\x1a\x1c"

// MayType returns a refusal unless the principal may type commands into a console: those with a
// signal act on the container's power.
func (p Principal) MayType(commands ...string) error {
	if !p.HasScope(v1.ScopeConsole) {
		return ErrScope
	}
	if strings.ContainsAny(strings.Join(commands, ""), signalKeys) && !p.HasScope(v1.ScopePower) {
		return v1.Errorf(v1.ScopeDenied, "Token scope does not allow this operation: control characters such as Ctrl-C need the scope power")
	}
	return nil
}

// Restricted reports whether the principal may access only some containers.
func (p Principal) Restricted() bool { return len(p.Bound) > 0 }

// CanAccess reports whether the principal may access the container that had this
// internal_id when the principal was last verified. Containers that it may not
// access are answered as if they did not exist.
func (p Principal) CanAccess(container string) bool {
	return !p.Restricted() || slices.Contains(p.present, container)
}

// Containers returns the internal_ids of the containers that a restricted principal may
// access.
func (p Principal) Containers() []string { return slices.Clone(p.present) }

// CanAccessAny reports whether the principal may access one of some containers.
func (p Principal) CanAccessAny(containers []string) bool {
	return !p.Restricted() || slices.ContainsFunc(containers, p.CanAccess)
}

// CanSee reports whether an event is about a container that the principal may
// access, and not about an earlier one of the same internal_id, or about the volume of
// one.
func (p Principal) CanSee(e v1.Event) bool {
	if !p.Restricted() {
		return true
	}
	sees := func(ref v1.ContainerRef) bool { return p.CanAccess(ref.ID) && slices.Contains(p.Bound, ref) }
	return sees(v1.ContainerRef{ID: e.Container, UID: e.UID}) || slices.ContainsFunc(e.Users, sees)
}

// Show returns an event as the principal receives it. If it may access only some
// containers, it receives the name and the way of those who sent other requests than its
// own, and neither their tokens, nor their addresses, nor their end users.
func (p Principal) Show(e v1.Event) v1.Event {
	if p.Restricted() && e.Actor.TokenID != p.TokenID {
		e.Actor = v1.Actor{Name: e.Actor.Name, Via: e.Actor.Via}
	}
	return e
}

// CheckVolume returns v1.ErrVolumeNotFound unless one of the containers that the principal may
// access uses a volume. id is the full one.
func (p Principal) CheckVolume(tx *store.Tx, id string) error {
	if !p.Restricted() {
		return nil
	}
	ids, err := p.Volumes(tx)
	if err == nil && !slices.Contains(ids, id) {
		err = v1.ErrVolumeNotFound
	}
	return err
}

// Volumes returns the ids of the volumes that the containers use which a restricted
// principal may access, sorted.
func (p Principal) Volumes(tx *store.Tx) (ids []string, err error) {
	for _, container := range p.present {
		o, err := store.Containers.Get(tx, container)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, o.Spec.VolumeID)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// resolve records which of the bound containers still exist.
func (p Principal) resolve(tx *store.Tx) (Principal, error) {
	p.present = nil
	for _, ref := range p.Bound {
		o, err := store.Containers.Get(tx, ref.ID)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return p, err
		}
		if o.Meta.UID == ref.UID {
			p.present = append(p.present, ref.ID)
		}
	}
	return p, nil
}
