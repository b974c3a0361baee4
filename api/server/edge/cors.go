package edge

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	v1 "berth/api/v1"
)

// The CORS headers that do not depend on a request. There is no
// Access-Control-Allow-Credentials: a page sends its token itself.
const (
	allowedMethods = "GET, HEAD, POST, PUT, PATCH, DELETE"
	allowedHeaders = "Authorization, Accept, Content-Type, Range, If-Match, Idempotency-Key, X-Berth-Actor"
	exposedHeaders = "X-Request-Id, X-Error-Code, ETag, Content-Disposition, Content-Range, Retry-After, Idempotent-Replayed"
	preflightAge   = "600" // seconds that a browser may keep the answer to a preflight
)

// checkOrigin sets the CORS headers of a response, those of an error included. It
// returns errOrigin if a web page sent the request that is neither berth's own nor of
// an allowed origin. A request without Origin does not come from such a page.
func (s *Server) checkOrigin(c *fiber.Ctx, config v1.ServerConfig) error {
	c.Vary(fiber.HeaderOrigin)
	origin := c.Get(fiber.HeaderOrigin)
	if origin == "" {
		return nil
	}
	if !allowedOrigin(origin, config) && !ownOrigin(origin, s.hosts(c)) {
		return errOrigin
	}
	c.Set(fiber.HeaderAccessControlAllowOrigin, origin)
	c.Set(fiber.HeaderAccessControlExposeHeaders, exposedHeaders)
	return nil
}

// isPreflight reports whether a browser asks if it may send a request of a page. The
// request itself follows, with its token.
func isPreflight(c *fiber.Ctx) bool {
	return c.Method() == fiber.MethodOptions && c.Get(fiber.HeaderOrigin) != "" &&
		c.Get(fiber.HeaderAccessControlRequestMethod) != ""
}

// answerPreflight permits every method of the API, whatever the path: the request
// that follows gets the error, which the page can read.
func answerPreflight(c *fiber.Ctx) error {
	SetRoute(c, "preflight")
	c.Set(fiber.HeaderAccessControlAllowMethods, allowedMethods)
	c.Set(fiber.HeaderAccessControlAllowHeaders, allowedHeaders)
	c.Set(fiber.HeaderAccessControlMaxAge, preflightAge)
	c.Status(fiber.StatusNoContent)
	return nil
}

// hosts returns the names by which a browser may know this server: the Host of a
// request, and from a trusted proxy also the host that the proxy was asked for. A page
// cannot set X-Forwarded-Host: a preflight does not permit it.
func (s *Server) hosts(c *fiber.Ctx) []string {
	hosts := []string{string(c.Context().Host())}
	if !s.trusted(c.Context().RemoteIP().String()) {
		return hosts
	}
	for host := range strings.SplitSeq(c.Get(fiber.HeaderXForwardedHost), ",") {
		hosts = append(hosts, strings.TrimSpace(host))
	}
	return hosts
}
