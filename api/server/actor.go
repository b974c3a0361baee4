package server

import (
	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	v1 "berth/api/v1"
)

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
