package server

import (
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
)

// maxAddresses bounds how many addresses are remembered to space their log lines.
const maxAddresses = 1024

// failures counts failed tokens, and logs them at most once a second per address.
type failures struct {
	log   *slog.Logger
	count prometheus.Counter

	mu   sync.Mutex
	last map[string]time.Time
}

func newFailures(log *slog.Logger, count prometheus.Counter) *failures {
	return &failures{log: log, count: count, last: map[string]time.Time{}}
}

func (f *failures) note(address string) {
	f.count.Inc()
	if f.due(address, time.Now()) {
		f.log.Warn("authorization failed", slog.String("address", address))
	}
}

// due says whether the last line about an address is long enough ago.
func (f *failures) due(address string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.last[address]) < time.Second {
		return false
	}
	if len(f.last) >= maxAddresses {
		clear(f.last)
	}
	f.last[address] = now
	return true
}

// clientIP is the address that a request came from. X-Forwarded-For is believed
// from trusted proxies only: the last address in it that is not one of theirs.
func (s *Server) clientIP(c *fiber.Ctx) string {
	address := c.Context().RemoteIP().String()
	trusted := s.settings.Current().Server.TrustedProxies
	hops := strings.Split(c.Get(fiber.HeaderXForwardedFor), ",")
	for i := len(hops) - 1; i >= 0 && within(trusted, address); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		address = hop.Unmap().String()
	}
	return address
}

// trusted reports whether an address is one of a trusted proxy.
func (s *Server) trusted(address string) bool {
	return within(s.settings.Current().Server.TrustedProxies, address)
}

// within says whether an address is in one of the networks.
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
