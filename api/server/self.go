package server

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// self holds the handlers about the token of the request.
type self struct {
	store   *store.Store
	tickets *auth.Tickets
}

type selfBody struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Scopes      []v1.Scope `json:"scopes"`
	Containers  []string   `json:"containers"` // null: all
	ExpiresAt   *string    `json:"expires_at"` // null: never
	RemoveOnUse bool       `json:"remove_on_use"`
}

// get answers with what the token allows, so that a page offers nothing else.
func (s self) get(c *fiber.Ctx) error {
	p := callerOf(c)
	body := selfBody{ID: p.TokenID, Name: p.Name, Scopes: p.Scopes, RemoveOnUse: p.SingleUse}
	if p.TokenID == "" {
		body.ID, body.Name = v1.Administrator, v1.Administrator
	}
	for _, ref := range p.Bound {
		body.Containers = append(body.Containers, ref.ID)
	}
	if !p.ExpiresAt.IsZero() {
		text := p.ExpiresAt.UTC().Format(time.RFC3339)
		body.ExpiresAt = &text
	}
	return edge.OK(c, body)
}

// ticket answers with a token for one request with the rights of this one.
func (s self) ticket(c *fiber.Ctx) error {
	secret, expires, err := s.tickets.Issue(callerOf(c))
	if err != nil {
		return err
	}
	describe(c, func(a *v1.Audit) { a.Action = "" }) // no entry: nothing is stored, and a page asks often
	return edge.OK(c, createdToken{secret.Reveal(), secret.Fingerprint(), expires.UTC().Format(time.RFC3339)})
}
