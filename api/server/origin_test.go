package server

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestOrigin(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	h.settings.change(func(c *v1.Config) { c.Server.AllowedOrigins = []string{"https://panel.example"} })
	for origin, ok := range map[string]bool{
		"https://panel.example": true, h.base: true, "http://panel.example": false, "https://evil.example": false, "null": false,
		"https://panel.example.evil.example": false,
	} {
		_, resp, err := h.dialSocket("/ws/mc", http.Header{"Authorization": {"Bearer " + adminToken}, "Origin": {origin}})
		require.Equal(t, ok, err == nil, origin)
		if !ok {
			require.Equal(t, 403, resp.StatusCode)
		}
	}
}
