package server

import (
	"time"

	"berth/api/auth"
	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

// tokens holds the handlers for tokens.
type tokens struct {
	store    *store.Store
	settings auth.Settings
}

func (s tokens) check(c *call, r *v1.TokenRequest) error {
	intent.CheckToken(&c.fieldErrors, *r, time.Duration(s.settings.Current().Authorization.MaxTTL))
	auth.CheckKeys(&c.fieldErrors, r.SSHKeys)
	return nil
}

func (s tokens) mint(c *call, r v1.TokenRequest) (v1.NewToken, error) {
	var f v1.FieldErrors // check found none
	settings := s.settings.Current().Authorization
	grant := auth.Grant{Name: r.Name, TTL: intent.CheckToken(&f, r, time.Duration(settings.MaxTTL)), SingleUse: r.RemoveOnUse,
		Scopes: r.Scopes, Containers: r.Containers, SSHKeys: auth.CheckKeys(&f, r.SSHKeys),
		OnBehalfOf: r.OnBehalfOf, Address: r.Address}
	secret, expires, err := auth.Mint(c.writer(s.store), settings, c.caller, grant)
	return newToken(secret, expires), err
}

func newToken(secret v1.Secret, expires time.Time) v1.NewToken {
	return v1.NewToken{Token: secret.Reveal(), ID: secret.Fingerprint(), ExpiresAt: expires.UTC().Format(time.RFC3339)}
}

func viewOfToken(o v1.Token) v1.TokenView {
	view := v1.TokenView{ID: o.Meta.ID, Name: o.Spec.Name, Scopes: o.Spec.Scopes, Containers: []string{}, SSHKeys: []string{},
		OnBehalfOf: o.Spec.OnBehalfOf, Address: o.Spec.Address,
		ExpiresAt: o.Spec.ExpiresAt.UTC().Format(time.RFC3339), RemoveOnUse: o.Spec.RemoveOnUse, Spent: o.Spec.Spent,
		Parent: v1.NullString(o.Spec.Parent)}
	for _, ref := range o.Spec.Containers {
		view.Containers = append(view.Containers, ref.ID)
	}
	for _, key := range o.Spec.SSHKeys {
		view.SSHKeys = append(view.SSHKeys, auth.KeyFingerprint(key))
	}
	return view
}

type tokensBody struct {
	Tokens   []v1.TokenView `json:"tokens"`
	Continue string         `json:"continue,omitempty"`
}

func (s tokens) list(c *call) (body tokensBody, err error) {
	page, err := pageOf(c)
	if err != nil {
		return body, err
	}
	tx := s.store.Read()
	listed := auth.Listed(tx, s.settings.Current().Authorization)
	body.Tokens, body.Continue = listShown(page, store.Tokens.After(tx, page.after), func(o v1.Token) (v1.TokenView, bool) {
		return viewOfToken(o), listed(o)
	})
	return body, nil
}

func (s tokens) revoke(c *call) (messageBody, error) {
	return messageBody{"Token revoked"}, auth.Revoke(c.writer(s.store), c.Params("token"))
}

// self holds the handlers about the token of the request.
type self struct {
	tickets *auth.Tickets
}

// get answers with what the token allows, so that a page offers nothing else.
func (s self) get(c *call) (v1.Self, error) {
	p := c.caller
	body := v1.Self{ID: p.TokenID, Name: p.Name, Scopes: p.Scopes, RemoveOnUse: p.SingleUse}
	if p.TokenID == "" {
		body.ID, body.Name = v1.Administrator, v1.Administrator
	}
	for _, ref := range p.Bound {
		body.Containers = append(body.Containers, ref.ID)
	}
	if !p.ExpiresAt.IsZero() {
		body.ExpiresAt = v1.NullString(p.ExpiresAt.UTC().Format(time.RFC3339))
	}
	return body, nil
}

// ticket answers with a token for one request with the rights of this one.
func (s self) ticket(c *call) (v1.NewToken, error) {
	secret, expires, err := s.tickets.Issue(c.caller)
	if err == nil {
		c.describe(func(a *v1.Audit) { a.Action = "" }) // no entry: nothing is stored, and a page asks often
	}
	return newToken(secret, expires), err
}
