package main

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/cmd/berth/config"
)

// TestWarnPublic expects a warning unless the listener has TLS.
func TestWarnPublic(t *testing.T) {
	for address, want := range map[string]int{"0.0.0.0": 1, "::": 1, "192.0.2.1": 1, "127.0.0.1": 0, "::1": 0} {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		addr := &net.TCPAddr{IP: net.ParseIP(address), Port: 8070}
		warnPublic(log, v1.Config{}, addr)
		require.Equal(t, want, strings.Count(out.String(), "server.tls.cert"), address)
		withTLS := v1.Config{Server: v1.ServerConfig{TLS: v1.TLSConfig{Cert: "c", Key: "k"}}}
		warnPublic(log, withTLS, addr)
		require.Equal(t, want, strings.Count(out.String(), "\n"), address)
	}
}

func TestWelcome(t *testing.T) {
	text := func(l config.Loaded) string {
		var out bytes.Buffer
		welcome(&out, l, false, &net.TCPAddr{IP: net.IPv4zero, Port: 8070})
		return out.String()
	}
	plain := config.Loaded{Path: "b.yaml", Config: v1.Config{UI: v1.UIConfig{Enabled: true}}}
	require.Contains(t, text(plain), "curl http://127.0.0.1:8070/api/v1/public/ping\n  page:    http://127.0.0.1:8070/ui/\n")
	encrypted := config.Loaded{Path: "b.yaml", Config: v1.Config{Server: v1.ServerConfig{TLS: v1.TLSConfig{Cert: "c", Key: "k"}}}}
	require.Contains(t, text(encrypted), "curl -k https://127.0.0.1:8070/api/v1/public/ping\n")
	require.NotContains(t, text(encrypted), "/ui/", "it is disabled")
}
