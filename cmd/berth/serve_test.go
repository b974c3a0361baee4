package main

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
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
