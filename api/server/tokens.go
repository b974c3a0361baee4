package server

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// tokens holds the handlers for tokens.
type tokens struct {
	store    *store.Store
	settings auth.Settings
	decoder  decoder
}

func (s tokens) mint(c *fiber.Ctx) error {
	var body struct {
		TTL         *string    `json:"ttl"`
		RemoveOnUse bool       `json:"remove_on_use"`
		Scopes      []v1.Scope `json:"scopes"`
		Containers  []string   `json:"containers"`
	}
	var f v1.FieldErrors
	if err := s.decoder.decode(c, &body, &f); err != nil {
		return err
	}
	settings := s.settings.Current().Authorization
	ttl := intent.CheckToken(&f, intent.TokenRequest{TTL: body.TTL, Scopes: body.Scopes, Containers: body.Containers,
		MaxTTL: time.Duration(settings.MaxTTL)})
	if err := f.Err(); err != nil {
		return err
	}
	grant := auth.Grant{TTL: ttl, SingleUse: body.RemoveOnUse, Scopes: body.Scopes, Containers: body.Containers}
	secret, expires, err := auth.Mint(s.store, settings, callerOf(c), grant)
	if err != nil {
		return err
	}
	return edge.OK(c, struct {
		Token     string `json:"token"`
		ExpiresAt string `json:"expires_at"`
	}{secret.Reveal(), iso(expires)})
}

// iso formats a time in RFC 3339, rounded up to whole seconds.
func iso(t time.Time) string { return t.UTC().Add(time.Second - 1).Format(time.RFC3339) }

type tokenBody struct {
	ID          string     `json:"id"`
	Scopes      []v1.Scope `json:"scopes"`
	Containers  []string   `json:"containers"`
	ExpiresAt   string     `json:"expires_at"`
	RemoveOnUse bool       `json:"remove_on_use"`
	Spent       bool       `json:"spent"`  // the single use has begun
	Parent      *string    `json:"parent"` // id of the token that minted this one; null: the configured token
}

func bodyOfToken(o v1.Token) tokenBody {
	containers := []string{}
	for _, ref := range o.Spec.Containers {
		containers = append(containers, ref.ID)
	}
	return tokenBody{o.Meta.ID, o.Spec.Scopes, containers, iso(o.Spec.ExpiresAt), o.Spec.RemoveOnUse, o.Spec.Spent, orNull(o.Spec.Parent)}
}

type tokensBody struct {
	Tokens []tokenBody `json:"tokens"`
}

func (s tokens) list(c *fiber.Ctx) error {
	body := tokensBody{Tokens: []tokenBody{}}
	err := s.store.View(func(tx *store.Tx) error {
		list, err := auth.List(tx, s.settings.Current().Authorization)
		for _, o := range list {
			body.Tokens = append(body.Tokens, bodyOfToken(o))
		}
		return err
	})
	if err != nil {
		return err
	}
	return edge.OK(c, body)
}

func (s tokens) revoke(c *fiber.Ctx) error {
	if err := auth.Revoke(s.store, edge.Param(c, "token")); err != nil {
		return err
	}
	return edge.OK(c, messageBody{"Token revoked"})
}
