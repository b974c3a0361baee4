package edge

import (
	"bytes"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	v1 "berth/api/v1"
)

// checkPage returns an error for a request that a web page of another site may
// have caused, if authorization is off. Such a page uses another host name (DNS
// rebinding), or its browser sends Origin or Sec-Fetch-Site. A request without
// these does not come from a web page. See ADR 0052.
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

// servedAs reports whether a Host header is acceptable while authorization is
// off: a loopback name or address, or the host of an allowed origin. With
// authorization.allow_insecure every IP address and server.host are acceptable
// too: DNS rebinding needs a host name of the attacker.
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

// hostname returns a Host header without its port, in lower case.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

// OriginAllowed reports whether the Origin of a request may open a WebSocket: this
// host, an origin in server.allowed_origins, or none, since all browsers send it.
func OriginAllowed(c *fiber.Ctx, config v1.ServerConfig) bool {
	origin := c.Get(fiber.HeaderOrigin)
	if origin == "" {
		return true
	}
	if slices.ContainsFunc(config.AllowedOrigins, func(a string) bool { return a == "*" || strings.EqualFold(a, origin) }) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, string(c.Context().Host()))
}

// folded reports whether a header is folded over several lines. Proxies read such
// lines in different ways, and RFC 9112 lets a server refuse them.
func folded(headers []byte) bool {
	return bytes.Contains(headers, []byte("\n ")) || bytes.Contains(headers, []byte("\n\t"))
}
