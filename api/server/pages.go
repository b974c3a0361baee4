package server

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	v1 "berth/api/v1"
)

// checkPage refuses what a web page may have made a browser send, where no token
// keeps it out. A page reaches this host under another name (DNS rebinding), or
// names itself in Origin or Sec-Fetch-Site. What sends none of these is no page.
func checkPage(c *fiber.Ctx, config v1.Config) error {
	if config.Authorization.Enabled {
		return nil
	}
	inHeader, inURL := string(c.Request().Header.Host()), string(c.Context().Host())
	if !servedAs(inHeader, config) || !servedAs(inURL, config) {
		return errHost
	}
	origin := c.Get(fiber.HeaderOrigin)
	if slices.ContainsFunc(config.Server.AllowedOrigins, func(a string) bool { return strings.EqualFold(a, origin) }) {
		return nil
	}
	if u, err := url.Parse(origin); origin != "" && (err != nil || !strings.EqualFold(u.Host, inHeader)) {
		return errPage
	}
	switch c.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return nil
	}
	return errPage
}

// servedAs reports whether a Host header may name this daemon while nobody needs
// a token: a loopback name or address, or the host of an allowed origin. With
// authorization.allow_insecure an address will do as well, and server.host: a
// page at another site has its own name in Host, and no name of it is an address.
func servedAs(host string, config v1.Config) bool {
	name := hostname(host)
	if v1.IsLoopback(name) {
		return true
	}
	if config.Authorization.AllowInsecure {
		_, err := netip.ParseAddr(name)
		if err == nil || strings.EqualFold(name, config.Server.Host) {
			return true
		}
	}
	return name != "" && slices.ContainsFunc(config.Server.AllowedOrigins, func(origin string) bool {
		u, err := url.Parse(origin)
		return err == nil && strings.EqualFold(u.Hostname(), name)
	})
}

// hostname is a Host header without its port, in lower case.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}
