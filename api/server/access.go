package server

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// vendorType is the media type that a request must accept, in any case.
const vendorType = "Application/vnd.berthv1+json"

// access checks who may use a route.
type access struct {
	store    *store.Store
	settings auth.Settings
	front    *edge.Server
	auditor  auditor
	paces    paces
	tickets  *auth.Tickets
	log      *slog.Logger
}

// guard returns the handler of a route behind its checks: token, vendor header,
// scope, names of the query parameters. A single-use token is spent after them: from then on the route answers the
// request, whatever the answer.
func (a access) guard(r route) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if a.isPublic(r) {
			edge.CallOf(c).Route = r.path
			if err := r.checkQuery(c); err != nil {
				return err
			}
			return r.handle(c)
		}
		if err := a.admit(c, r); err != nil {
			return err
		}
		edge.CallOf(c).Route = r.path
		caller := callOf(c).caller
		if !r.allows(caller) {
			return auth.ErrScope
		}
		if err := r.checkQuery(c); err != nil {
			return err
		}
		if err := a.spend(caller); err != nil {
			if errors.Is(err, auth.ErrUnauthorized) {
				a.front.Unauthorized(c, true)
			}
			return err
		}
		err := a.handle(c, r)
		if caller.SingleUse && !callOf(c).session {
			a.forget(caller)
		}
		return err
	}
}

// spend spends the token of a request if it is for one request only.
func (a access) spend(caller auth.Principal) error {
	if caller.IsTicket() {
		return a.tickets.Spend(caller)
	}
	return auth.Spend(a.store, caller)
}

// handle calls the handler of a route, or sends the stored response of an earlier
// request with the same idempotency key.
func (a access) handle(c *fiber.Ctx, r route) (err error) {
	if r.in == nil && r.out != nil { // otherwise decode does it
		err = a.auditor.keys.begin(callOf(c), nil)
	}
	if err == nil && r.is(limitsStarts) {
		err = a.paces.start(callOf(c).caller, c.Params("id"))
	}
	if err == nil && r.is(limitsJobs) {
		err = a.paces.job(callOf(c).caller)
	}
	if err == nil {
		err = r.handle(c)
	}
	if err == nil {
		return nil
	}
	var stored replay
	if errors.As(err, &stored) {
		return stored.send(c)
	}
	return err
}

// unmatched returns the handler of requests that no route matches. It answers 404 or
// 405 only to requests with a valid token and the vendor header.
func (a access) unmatched(table []route) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if err := a.admit(c, route{}); err != nil {
			return err
		}
		err := c.Next()
		for _, r := range table {
			if r.is(upgrade) && fiber.RoutePatternMatch(c.Path(), r.path) {
				c.Set(fiber.HeaderAllow, get) // the router lists HEAD, which refuseHead handles
			}
		}
		return err
	}
}

// refuseHead returns the handler of HEAD for a WebSocket.
func (a access) refuseHead(r route) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if err := a.admit(c, r); err != nil {
			return err
		}
		c.Set(fiber.HeaderAllow, get)
		return edge.ErrMethod
	}
}

// isPublic reports whether a route needs no token.
func (a access) isPublic(r route) bool {
	return r.is(public) || r.path == metricsPath && a.settings.Current().Metrics.Public
}

// admit checks the token, the vendor header and the actor header of a request, and
// records its principal and its actor.
func (a access) admit(c *fiber.Ctx, r route) error {
	caller, err := a.authenticate(c, r)
	if err != nil {
		return err
	}
	actor, refused := a.identify(c, caller)
	state := edge.CallOf(c)
	state.Actor, state.Owner = actor, &call{Ctx: c, caller: caller}
	if err := a.auditor.begin(c, r, actor, caller, a.recheck(c, r, caller)); err != nil {
		return err
	}
	if !r.is(anyAccept) && !acceptsVendor(c) {
		a.front.WrongVendor(c, vendorType)
		return edge.ErrVendor
	}
	return refused
}

// recheck returns the check of a request that is repeated in the update that it makes: that its
// token is still valid, and may access the objects of its path, and that its container is the
// same one. The request may wait for its turn, or for its body.
func (a access) recheck(c *fiber.Ctx, r route, caller auth.Principal) func(tx *store.Tx) error {
	id, volume, uid := c.Params("id"), c.Params("volume"), ""
	if id != "" && r.method != put { // a PUT is for whatever has the id
		_ = a.store.View(func(tx *store.Tx) error { // an error is found again in the update
			o, err := store.Containers.Get(tx, id)
			uid = o.Meta.UID
			return err
		})
	}
	return func(tx *store.Tx) error {
		p, err := caller.Verify(tx, a.settings.Current().Authorization)
		if err != nil {
			return err
		}
		if id != "" && !p.CanAccess(id) {
			return v1.ErrContainerNotFound
		}
		if uid != "" {
			if err := onContainer(v1.Meta{ID: id, UID: uid})(tx, p); err != nil {
				return err
			}
		}
		if volume == "" || !p.Restricted() {
			return nil
		}
		v, err := intent.FindVolume(tx, volume)
		if err != nil {
			return err
		}
		return onVolumeOf(v.Meta.ID)(tx, p)
	}
}

// authenticate returns the principal of a request.
func (a access) authenticate(c *fiber.Ctx, r route) (auth.Principal, error) {
	secret := bearer(c.Get(fiber.HeaderAuthorization))
	if secret == "" && r.is(queryToken) {
		secret = c.Query(tokenQuery)
	}
	config := a.settings.Current().Authorization
	caller, err := auth.Authenticate(a.store, config, secret)
	if errors.Is(err, auth.ErrUnauthorized) {
		caller, err = a.tickets.Find(a.store, config, secret)
	}
	if errors.Is(err, auth.ErrUnauthorized) {
		a.front.Unauthorized(c, secret != "")
	}
	if err == nil && config.Enabled {
		edge.SetToken(c, caller.TokenID, caller.Tenant())
	}
	return caller, err
}

// bearer returns the token of an Authorization header.
func bearer(header string) string {
	const scheme = "bearer "
	if len(header) < len(scheme) || !strings.EqualFold(header[:len(scheme)], scheme) {
		return ""
	}
	return strings.TrimSpace(header[len(scheme):])
}

// acceptsVendor reports whether an Accept header names the vendor type.
func acceptsVendor(c *fiber.Ctx) bool {
	for _, header := range c.Request().Header.PeekAll(fiber.HeaderAccept) {
		for part := range bytes.SplitSeq(header, []byte(",")) {
			kind, _, _ := bytes.Cut(part, []byte(";"))
			if strings.EqualFold(string(bytes.TrimSpace(kind)), vendorType) {
				return true
			}
		}
	}
	return false
}

// forget removes the record of a spent token. A token that cannot be removed now
// expires.
func (a access) forget(p auth.Principal) {
	if err := auth.Forget(a.store, p); err != nil {
		a.log.Warn("a spent token is kept until it expires", slog.String("token", p.TokenID), slog.Any("err", err))
	}
}

// actorHeader names the end user on whose behalf a panel sends a request.
const actorHeader = "X-Berth-Actor"

var (
	errActor      = v1.Errorf(v1.InvalidRequest, actorHeader+": must be one value of at most 128 printable characters")
	errActorScope = v1.Errorf(v1.ScopeDenied, actorHeader+" needs a token with the scope admin")
)

// identify returns the actor of a request, even if its header is refused.
func (a access) identify(c *fiber.Ctx, caller auth.Principal) (v1.Actor, error) {
	actor := caller.Actor(v1.ViaHTTP, a.front.ClientIP(c))
	values := c.Request().Header.PeekAll(actorHeader)
	if len(values) == 0 {
		return actor, nil
	}
	user := string(values[0])
	switch {
	case len(values) > 1 || !v1.IsName(user):
		return actor, errActor
	case !caller.HasScope(v1.ScopeAdmin):
		return actor, errActorScope
	}
	actor.OnBehalfOf = user
	return actor, nil
}
