package edge

import (
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"strconv"

	"github.com/gofiber/fiber/v2"

	v1 "berth/api/v1"
)

// Locals of a request.
const (
	requestKey = "request" // its id
	tokenKey   = "token"   // the id of its token
	tenantKey  = "tenant"  // whose limits it uses
	actorKey   = "actor"   // who sent it
	routeKey   = "route"   // the path of its route
	bodyKey    = "body"    // frees the memory of its body
	dryRunKey  = "dry_run" // it changes nothing, whatever its method
)

// requestName is the form of an X-Request-Id that is accepted from clients.
var requestName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// RequestID returns the id of a request, the one in the log and in X-Request-Id.
func RequestID(c *fiber.Ctx) string {
	id, _ := c.Locals(requestKey).(string)
	return id
}

func newRequestID() string {
	var b [8]byte
	rand.Read(b[:]) // never fails, as its documentation says
	return hex.EncodeToString(b[:])
}

// SetToken records the id of the valid token of a request, and the tenant for whom the
// connection and the memory for the body are counted. Those of the configured token are empty.
func SetToken(c *fiber.Ctx, id, tenant string) {
	c.Locals(tokenKey, id)
	c.Locals(tenantKey, tenant)
	if own := connOf(c); own != nil {
		own.all.prove(own, tenant)
	}
}

func tenantOf(c *fiber.Ctx) string {
	tenant, _ := c.Locals(tenantKey).(string)
	return tenant
}

// SetDryRun records that a request changes nothing, whatever its method.
func SetDryRun(c *fiber.Ctx) { c.Locals(dryRunKey, true) }

// SetActor records who sent a request.
func SetActor(c *fiber.Ctx, a v1.Actor) { c.Locals(actorKey, a) }

// Actor returns who sent a request. It is the zero Actor until SetActor.
func Actor(c *fiber.Ctx) v1.Actor {
	a, _ := c.Locals(actorKey).(v1.Actor)
	return a
}

// SetRoute records the route of a request for the metrics.
func SetRoute(c *fiber.Ctx, path string) { c.Locals(routeKey, path) }

// Param returns a segment of the path, percent-decoded once.
func Param(c *fiber.Ctx, name string) string { return c.Params(name) }

// QueryInt returns a query parameter between 0 and most, or absent if it is missing.
func QueryInt(c *fiber.Ctx, name string, absent, most int) (int, error) {
	text := c.Query(name)
	if text == "" {
		return absent, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || int(n) > most {
		return 0, v1.Errorf(v1.InvalidRequest, "%s: must be a number between 0 and %d", name, most)
	}
	return int(n), nil
}

// QueryBool returns a query parameter that is true or false, or false if it is missing.
func QueryBool(c *fiber.Ctx, name string) (bool, error) {
	switch c.Query(name) {
	case "", "false", "0":
		return false, nil
	case "true", "1":
		return true, nil
	}
	return false, v1.Errorf(v1.InvalidRequest, "%s: must be true or false", name)
}

// QueryValues returns every value of a query parameter.
func QueryValues(c *fiber.Ctx, name string) (values []string) {
	for _, value := range c.Context().QueryArgs().PeekMulti(name) {
		values = append(values, string(value))
	}
	return values
}
