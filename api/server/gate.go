package server

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/store"
)

// vendorType is the media type that a request accepts.
const vendorType = "application/vnd.berthv1+json"

// The keys of what is known of a request.
const (
	callerKey  = "caller"
	sessionKey = "session" // it has one, which ends later than the handler
	routeKey   = "route"
	requestKey = "request"
	publicKey  = "public" // it needs no caller
	bodyKey    = "body"   // the reservation for it
)

// folded reports whether a header goes on in a second line. Proxies read such
// lines in different ways, and RFC 9112 lets a server refuse them.
func folded(headers []byte) bool {
	return bytes.Contains(headers, []byte("\n ")) || bytes.Contains(headers, []byte("\n\t"))
}

// gate checks the token, then the vendor header, before anything is said about
// the route.
func (s *Server) gate(c *fiber.Ctx) error {
	if folded(c.Request().Header.RawHeaders()) {
		return errFolded
	}
	if err := checkPage(c, s.settings.Current()); err != nil {
		return err
	}
	r := s.specialRoute(c.Method(), c.Path())
	if r.public {
		c.Locals(publicKey, true)
		return c.Next()
	}
	caller, err := s.authenticate(c, r)
	if err != nil {
		return err
	}
	if !r.anyAccept && !acceptsVendor(c) {
		return errVendor
	}
	c.Locals(callerKey, caller)
	return c.Next()
}

// specialRoute is the route of a path if it is not guarded like the rest, or
// the zero route.
func (s *Server) specialRoute(method, path string) route {
	if method == fiber.MethodHead {
		method = fiber.MethodGet
	}
	for _, r := range s.special {
		if r.method == method && samePath(r.path, path) {
			if r.path == metricsPath && s.settings.Current().Metrics.Public {
				r.public = true
			}
			return r
		}
	}
	return route{}
}

// samePath says whether path is one of pattern, as the router sees it.
func samePath(pattern, path string) bool {
	want := strings.Split(pattern, "/")
	have := strings.Split(strings.TrimRight(path, "/"), "/")
	if len(want) != len(have) {
		return false
	}
	for i := range want {
		if want[i] != have[i] && (!strings.HasPrefix(want[i], ":") || have[i] == "") {
			return false
		}
	}
	return true
}

// authenticate returns the principal of a request.
func (s *Server) authenticate(c *fiber.Ctx, r route) (auth.Principal, error) {
	secret := bearer(c.Get(fiber.HeaderAuthorization))
	if secret == "" && r.queryToken {
		secret = c.Query("token")
	}
	config := s.settings.Current().Authorization
	caller, err := auth.Authenticate(s.store, config, secret)
	if errors.Is(err, auth.ErrUnauthorized) {
		s.unauthorized(c, secret != "")
	}
	if own, is := c.Context().Conn().(*conn); is && err == nil && config.Enabled {
		own.all.prove(own, caller.TokenID)
	}
	return caller, err
}

// bearer is the token of an Authorization header.
func bearer(header string) string {
	const scheme = "bearer "
	if len(header) < len(scheme) || !strings.EqualFold(header[:len(scheme)], scheme) {
		return ""
	}
	return strings.TrimSpace(header[len(scheme):])
}

// acceptsVendor says whether an Accept header names the vendor type.
func acceptsVendor(c *fiber.Ctx) bool {
	for _, header := range c.Request().Header.PeekAll(fiber.HeaderAccept) {
		for part := range strings.SplitSeq(string(header), ",") {
			kind, _, _ := strings.Cut(part, ";")
			if strings.EqualFold(strings.TrimSpace(kind), vendorType) {
				return true
			}
		}
	}
	return false
}

// guard is the handler of a route behind the check of the token's scope. A
// token of a single use is spent here: from now on its request is answered by
// the route, whatever the answer.
func (s *Server) guard(r route) fiber.Handler {
	return func(c *fiber.Ctx) error {
		c.Locals(routeKey, r.path)
		if public, _ := c.Locals(publicKey).(bool); public {
			if expects(c) {
				return nil
			}
			return r.handle(c)
		}
		caller := callerOf(c)
		if !caller.HasScope(r.scope) && (r.orScope == "" || !caller.HasScope(r.orScope)) || r.nodeWide && caller.Restricted() {
			return auth.ErrScope
		}
		if expects(c) {
			return nil
		}
		if err := auth.Spend(s.store, caller); err != nil {
			if errors.Is(err, auth.ErrUnauthorized) {
				s.unauthorized(c, true)
			}
			return err
		}
		err := r.handle(c)
		if caller.SingleUse && c.Locals(sessionKey) == nil {
			forget(s, caller)
		}
		return err
	}
}

// forget removes the record of a spent token. One that cannot be removed now
// expires.
func forget(s *Server, p auth.Principal) {
	if err := auth.Forget(s.store, p); err != nil {
		s.log.Warn("a spent token is kept until it expires", slog.String("token", p.TokenID), slog.Any("err", err))
	}
}

// verify checks the token of a request again: its body may have taken longer
// than the token was valid, or than its container was there.
func verify(s *Server, c *fiber.Ctx) error {
	if public, _ := c.Locals(publicKey).(bool); public {
		return nil
	}
	return s.store.View(func(tx *store.Tx) error {
		p, err := callerOf(c).Verify(tx, s.settings.Current().Authorization)
		if err == nil {
			c.Locals(callerKey, p)
		}
		return err
	})
}

// callerOf returns the principal of a request. The zero one, which is that of
// a request without any, has no scope.
func callerOf(c *fiber.Ctx) auth.Principal {
	caller, _ := c.Locals(callerKey).(auth.Principal)
	return caller
}
