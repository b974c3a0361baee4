package server

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/limit"
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
	reads    *limit.Slots
	tickets  *auth.Tickets
	log      *slog.Logger
}

// spend spends the token of a request if it is for one request only.
func (a access) spend(c *call) (err error) {
	if c.caller.IsTicket() {
		err = a.tickets.Spend(c.caller)
	} else {
		err = auth.Spend(a.store, c.caller)
	}
	if errors.Is(err, auth.ErrUnauthorized) {
		a.front.WrongToken(c.Ctx)
	}
	return err
}

// refuse answers a request that no route matches. It answers 404 or 405 only to requests with a valid token and
// the vendor header.
func (a access) refuse(c *call, table []route) error {
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

// refuseHead answers HEAD for a WebSocket.
func (a access) refuseHead(c *call, r route) error {
	if err := a.admit(c, r); err != nil {
		return err
	}
	c.Set(fiber.HeaderAllow, get)
	return edge.ErrMethod
}

// isPublic reports whether a route needs no token.
func (a access) isPublic(r route) bool {
	return r.is(public) || r.path == metricsPath && a.settings.Current().Metrics.Public
}

// admit checks the token, the vendor header and the actor header of a request, and
// records its principal and its actor. It begins the entry in the audit log, within the pace of its tenant.
func (a access) admit(c *call, r route) (err error) {
	if c.caller, err = a.authenticate(c.Ctx, r); err != nil {
		return err
	}
	actor, refused := a.identify(c.Ctx, c.caller)
	edge.CallOf(c.Ctx).Actor = actor
	a.bind(c, r)
	if err := a.auditor.begin(c, r); err != nil {
		return err
	}
	if !r.is(anyAccept) && !acceptsVendor(c.Ctx) {
		a.front.WrongVendor(c.Ctx, vendorType)
		return edge.ErrVendor
	}
	return refused
}

// bind gives a request the check that is repeated when it has waited, and in the update that
// it makes: that its token is still valid, and may access the objects of its path, and that its
// container is the same one, with its uid.
func (a access) bind(c *call, r route) {
	caller, id, volume := c.caller, c.Params("id"), c.Params("volume")
	if id != "" && r.method != put { // a PUT is for whatever has the id
		o, _ := store.Containers.Get(a.store.Read(), id) // an error is found again in the update
		c.uid = o.Meta.UID
	}
	uid := c.uid
	c.recheck = func(tx *store.Tx) error {
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
	switch {
	case errors.Is(err, auth.ErrUnauthorized) && secret == "":
		a.front.MissingToken(c)
	case errors.Is(err, auth.ErrUnauthorized):
		a.front.WrongToken(c)
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
