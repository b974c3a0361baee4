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
		Name        string     `json:"name"`
		TTL         *string    `json:"ttl"`
		RemoveOnUse bool       `json:"remove_on_use"`
		Scopes      []v1.Scope `json:"scopes"`
		Containers  []string   `json:"containers"`
		SSHKeys     []string   `json:"ssh_keys"`
	}
	var f v1.FieldErrors
	if err := s.decoder.decode(c, &body, &f); err != nil {
		return err
	}
	settings := s.settings.Current().Authorization
	ttl := intent.CheckToken(&f, intent.TokenRequest{Name: body.Name, TTL: body.TTL, Scopes: body.Scopes, Containers: body.Containers,
		MaxTTL: time.Duration(settings.MaxTTL)})
	keys := auth.CheckKeys(&f, body.SSHKeys)
	if err := f.Err(); err != nil {
		return err
	}
	grant := auth.Grant{Name: body.Name, TTL: ttl, SingleUse: body.RemoveOnUse, Scopes: body.Scopes, Containers: body.Containers, SSHKeys: keys}
	secret, expires, err := auth.Mint(requestOf(c, s.store), settings, callerOf(c), grant)
	if err != nil {
		return err
	}
	return edge.OK(c, createdToken{secret.Reveal(), secret.Fingerprint(), expires.UTC().Format(time.RFC3339)})
}

// createdToken is a token with its secret.
type createdToken struct {
	Token     string `json:"token"`
	ID        string `json:"id"`
	ExpiresAt string `json:"expires_at"`
}

type tokenBody struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Scopes      []v1.Scope `json:"scopes"`
	Containers  []string   `json:"containers"`
	SSHKeys     []string   `json:"ssh_keys"` // fingerprints
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
	keys := []string{}
	for _, key := range o.Spec.SSHKeys {
		keys = append(keys, auth.KeyFingerprint(key))
	}
	return tokenBody{o.Meta.ID, o.Spec.Name, o.Spec.Scopes, containers, keys, o.Spec.ExpiresAt.UTC().Format(time.RFC3339), o.Spec.RemoveOnUse, o.Spec.Spent, orNull(o.Spec.Parent)}
}

type tokensBody struct {
	Tokens   []tokenBody `json:"tokens"`
	Continue string      `json:"continue,omitempty"`
}

func (s tokens) list(c *fiber.Ctx) error {
	page, err := pageOf(c)
	if err != nil {
		return err
	}
	var body tokensBody
	err = s.store.View(func(tx *store.Tx) error {
		listed := auth.Listed(tx, s.settings.Current().Authorization)
		body.Tokens, body.Continue = listObjects(tx, store.Tokens, page, func(o v1.Token) (tokenBody, bool) {
			return bodyOfToken(o), listed(o)
		})
		return nil
	})
	if err != nil {
		return err
	}
	return edge.OK(c, body)
}

func (s tokens) revoke(c *fiber.Ctx) error {
	if err := auth.Revoke(requestOf(c, s.store), edge.Param(c, "token")); err != nil {
		return err
	}
	return edge.OK(c, messageBody{"Token revoked"})
}
