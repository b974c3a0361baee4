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
// ADR 0021.
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

// The CORS headers that do not depend on a request. There is no
// Access-Control-Allow-Credentials: a page sends its token itself.
const (
	allowedMethods = "GET, HEAD, POST, PUT, PATCH, DELETE"
	allowedHeaders = "Authorization, Accept, Content-Type, Range, If-Match, If-None-Match, Idempotency-Key, X-Berth-Actor"
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
	CallOf(c).Route = "preflight"
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

// ClientIP returns the address of the client. Behind trusted proxies it is the
// last address in X-Forwarded-For that is not a trusted proxy; from others the
// header is ignored. Of several such headers the last one has the last addresses.
func (s *Server) ClientIP(c *fiber.Ctx) string {
	address := c.Context().RemoteIP().String()
	forwarded := c.Request().Header.PeekAll(fiber.HeaderXForwardedFor)
	if len(forwarded) == 0 {
		return address
	}
	trusted := s.options.Settings().Server.TrustedProxies
	hops := strings.Split(string(bytes.Join(forwarded, []byte(","))), ",")
	for i := len(hops) - 1; i >= 0 && within(trusted, address); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		address = hop.Unmap().String()
	}
	return address
}

// trusted reports whether an address is in server.trusted_proxies.
func (s *Server) trusted(address string) bool {
	return within(s.options.Settings().Server.TrustedProxies, address)
}

// within reports whether an address is in one of the networks.
func within(networks []string, address string) bool {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	for _, text := range networks {
		network, err := netip.ParsePrefix(text)
		if err == nil && network.Contains(ip.Unmap()) {
			return true
		}
	}
	return false
}
