package server

import (
	"net/http"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	v1 "berth/api/v1"
)

// route is one endpoint, and what it takes to use it.
type route struct {
	method, path string
	scope        v1.Scope // that a token needs; empty: none
	flags        flags
	handle       fiber.Handler
}

type flags uint8

const (
	public     flags = 1 << iota // no token, no vendor header
	anyAccept                    // no vendor header
	queryToken                   // the token may be the parameter token of the URL
	nodeWide                     // not for a token that is limited to some containers
	orRead                       // scope read is enough as well
	upgrade                      // a WebSocket

	link = anyAccept | queryToken // usable from a browser's link
)

func (r route) is(f flags) bool { return r.flags&f != 0 }

// allows reports whether a caller may use the route.
func (r route) allows(p auth.Principal) bool {
	if r.is(nodeWide) && p.Restricted() {
		return false
	}
	return r.scope == "" || p.HasScope(r.scope) || r.is(orRead) && p.HasScope(v1.ScopeRead)
}

const (
	get    = http.MethodGet
	post   = http.MethodPost
	put    = http.MethodPut
	remove = http.MethodDelete
)

const metricsPath = "/metrics"
