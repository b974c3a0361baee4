package server

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

// tokens answers what is about tokens.
type tokens struct{ *Server }

func (s tokens) routes() []route {
	return []route{
		post("/auth/tokens", v1.ScopeAdmin, s.mintToken),
		node(get("/auth/tokens", v1.ScopeAdmin, s.listTokens)),
		node(del("/auth/tokens/:token", v1.ScopeAdmin, s.revokeToken)),
	}
}

func (s tokens) mintToken(c *fiber.Ctx) error {
	var body struct {
		TTL         *string    `json:"ttl"`
		RemoveOnUse bool       `json:"remove_on_use"`
		Scopes      []v1.Scope `json:"scopes"`
		Containers  []string   `json:"containers"`
	}
	var f intent.Faults
	if err := s.decode(c, &body, &f); err != nil {
		return err
	}
	// A token of one use must not become one of many.
	single := body.RemoveOnUse || callerOf(c).SingleUse
	r := intent.TokenRequest{TTL: body.TTL, SingleUse: single, Scopes: body.Scopes, Containers: body.Containers,
		MaxTTL: time.Duration(s.settings.Current().Authorization.MaxTTL)}
	intent.CheckToken(&f, r)
	if err := f.Err(); err != nil {
		return err
	}
	secret, expires, err := intent.MintToken(s.store, callerOf(c), r)
	if err != nil {
		return err
	}
	return ok(c, struct {
		Token     string `json:"token"`
		ExpiresAt string `json:"expires_at"`
	}{secret.Reveal(), iso(expires)})
}

// iso is a time as the interface writes one: in whole seconds, rounded up.
func iso(t time.Time) string { return t.UTC().Add(time.Second - 1).Format(time.RFC3339) }

type tokenBody struct {
	ID          string     `json:"id"`
	Scopes      []v1.Scope `json:"scopes"`
	Containers  []string   `json:"containers"`
	ExpiresAt   string     `json:"expires_at"`
	RemoveOnUse bool       `json:"remove_on_use"`
}

type tokensBody struct {
	Tokens []tokenBody `json:"tokens"`
}

func (s tokens) listTokens(c *fiber.Ctx) error {
	body := tokensBody{Tokens: []tokenBody{}}
	err := s.store.View(func(tx *store.Tx) error {
		list, err := intent.ListTokens(tx)
		for _, o := range list {
			body.Tokens = append(body.Tokens, tokenBody{o.Meta.ID, o.Spec.Scopes,
				append([]string{}, o.Spec.Containers...), iso(o.Spec.ExpiresAt), o.Spec.RemoveOnUse})
		}
		return err
	})
	if err != nil {
		return err
	}
	return ok(c, body)
}

func (s tokens) revokeToken(c *fiber.Ctx) error {
	if err := intent.RevokeToken(s.store, param(c, "token")); err != nil {
		return err
	}
	return ok(c, messageBody{"Token revoked"})
}
