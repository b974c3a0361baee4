package edge

import (
	"bytes"
	"net/netip"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// ClientIP returns the address of the client. Behind trusted proxies it is the
// last address in X-Forwarded-For that is not a trusted proxy; from others the
// header is ignored. Of several such headers the last one has the last addresses.
func (s *Server) ClientIP(c *fiber.Ctx) string {
	address := c.Context().RemoteIP().String()
	forwarded := c.Request().Header.PeekAll(fiber.HeaderXForwardedFor)
	if len(forwarded) == 0 {
		return address
	}
	trusted := s.settings().Server.TrustedProxies
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
	return within(s.settings().Server.TrustedProxies, address)
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
