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
// rebinding), or its browser sends Origin, which checkOrigin checks, or
// Sec-Fetch-Site. A request without these does not come from a web page. See
// ADR 0052.
func checkPage(c *fiber.Ctx, config v1.Config) error {
	if config.Authorization.Enabled {
		return nil
	}
	inHeader, inURL := string(c.Request().Header.Host()), string(c.Context().Host())
	if !servedAs(inHeader, config) || !servedAs(inURL, config) {
		return errHost
	}
	if allowedOrigin(c.Get(fiber.HeaderOrigin), config.Server) {
		return nil
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

// allowedOrigin reports whether an origin is in server.allowed_origins.
func allowedOrigin(origin string, config v1.ServerConfig) bool {
	return slices.ContainsFunc(config.AllowedOrigins, func(a string) bool { return strings.EqualFold(a, origin) })
}

// ownOrigin reports whether an origin is berth itself under one of these hosts. Only
// the host and the port count: a proxy that ends TLS need not report the scheme.
func ownOrigin(origin string, hosts []string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Hostname() == "" || origin != u.Scheme+"://"+u.Host {
		return false
	}
	port := map[string]string{"http": ":80", "https": ":443"}[strings.ToLower(u.Scheme)]
	if port == "" {
		return false
	}
	return slices.ContainsFunc(hosts, func(host string) bool {
		return strings.EqualFold(strings.TrimSuffix(u.Host, port), strings.TrimSuffix(host, port))
	})
}

// folded reports whether a header is folded over several lines. Proxies read such
// lines in different ways, and RFC 9112 lets a server refuse them.
func folded(headers []byte) bool {
	return bytes.Contains(headers, []byte("\n ")) || bytes.Contains(headers, []byte("\n\t"))
}
