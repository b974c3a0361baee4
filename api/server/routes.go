package server

import (
	"github.com/gofiber/fiber/v2"

	v1 "berth/api/v1"
)

// route is one endpoint, and what it takes to use it.
type route struct {
	method, path string
	scope        v1.Scope // that a token needs
	orScope      v1.Scope // that does as well; empty: none
	handle       fiber.Handler

	public     bool // no token, no vendor header
	anyAccept  bool // no vendor header
	queryToken bool // the token may be the parameter token of the URL
	nodeWide   bool // not for a token that is limited to some containers
	upgrade    bool // a WebSocket
}

// routes are all endpoints.
func (s *Server) routes() []route {
	list := health{s}.routes()
	list = append(list, tokens{s}.routes()...)
	list = append(list, volumes{s}.routes()...)
	list = append(list, files{volumes{s}}.routes()...)
	list = append(list, ports{s}.routes()...)
	list = append(list, containers{s}.routes()...)
	list = append(list, consoles{s}.routes()...)
	list = append(list, sockets{s}.routes()...)
	return append(list, configuration{s}.routes()...)
}

func get(path string, scope v1.Scope, h fiber.Handler) route {
	return route{method: fiber.MethodGet, path: path, scope: scope, handle: h}
}

func post(path string, scope v1.Scope, h fiber.Handler) route {
	return route{method: fiber.MethodPost, path: path, scope: scope, handle: h}
}

func put(path string, scope v1.Scope, h fiber.Handler) route {
	return route{method: fiber.MethodPut, path: path, scope: scope, handle: h}
}

func del(path string, scope v1.Scope, h fiber.Handler) route {
	return route{method: fiber.MethodDelete, path: path, scope: scope, handle: h}
}

// open makes a route public.
func open(r route) route {
	r.public = true
	return r
}

// node keeps a route from tokens that are limited to some containers.
func node(r route) route {
	r.nodeWide = true
	return r
}

// anyAccept lets a route do without the vendor header.
func anyAccept(r route) route {
	r.anyAccept = true
	return r
}

// link makes a route usable from a browser's link: any Accept header, and the
// token may be in the URL.
func link(r route) route {
	r.anyAccept, r.queryToken = true, true
	return r
}
