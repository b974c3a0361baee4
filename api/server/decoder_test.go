package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestMediaTypesAndEncodings(t *testing.T) {
	h := newHarness(t)
	for contentType, ok := range map[string]bool{
		"": true, "application/json": true, "application/json; charset=utf-8": true, "Application/JSON": true,
		"text/plain": false, "application/x-www-form-urlencoded": false, "application/json; charset=latin1": false, "multipart/form-data; boundary=x": false, ";": false,
	} {
		header := http.Header{}
		if contentType != "" {
			header.Set("Content-Type", contentType)
		}
		a := h.do(request{method: "POST", path: "/auth/tokens", body: "{}", header: header})
		require.Equal(t, ok, a.status == 200, contentType)
		if !ok {
			require.Equal(t, 415, a.status)
			require.Equal(t, "unsupported_media_type", a.header.Get("X-Error-Code"))
		}
	}
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	require.Equal(t, 201, h.do(request{method: "POST", path: "/volumes", header: form}).status, "what curl -d '' sends")
	for _, encoding := range []string{"gzip", "identity", "br"} {
		a := h.do(request{method: "POST", path: "/auth/tokens", body: "{}", header: http.Header{"Content-Encoding": {encoding}}})
		require.Equal(t, 415, a.status, encoding)
	}
}

func TestBodyLimit(t *testing.T) {
	h := newHarness(t)
	h.settings.change(func(c *v1.Config) { c.Server.BodyLimit = 1000 })
	body := func(n int) string { return `{"ttl":"1h"` + strings.Repeat(" ", n-12) + "}" }
	require.Equal(t, 200, h.do(request{method: "POST", path: "/auth/tokens", body: body(1000)}).status)
	a := h.do(request{method: "POST", path: "/auth/tokens", body: body(1001)})
	require.Equal(t, 413, a.status)
	require.Equal(t, "Request body is too large", a.json["error"])
	require.Equal(t, 413, h.do(request{method: "POST", path: "/auth/tokens", body: body(1 << 20)}).status)
}
