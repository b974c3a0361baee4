package openapitest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDocumentIsValid(t *testing.T) { require.Greater(t, len(Routes(t)), 35) }

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		method, path, body, code string
		status                   int
		ok                       bool
	}{
		"good":             {"GET", "/healthz", `{"status":"ok"}`, "", 200, true},
		"trailing slash":   {"GET", "/healthz/", `{"status":"ok"}`, "", 200, true},
		"extra field":      {"GET", "/healthz", `{"status":"ok","x":1}`, "", 200, false},
		"missing field":    {"GET", "/healthz", `{}`, "", 200, false},
		"unknown status":   {"GET", "/healthz", `{"status":"ok"}`, "", 202, false},
		"error":            {"GET", "/containers/a", `{"error":"x"}`, "container_not_found", 404, true},
		"error's status":   {"GET", "/containers/a", `{"error":"x"}`, "container_not_found", 418, false},
		"error's code":     {"GET", "/containers/a", `{"error":"x"}`, "unheard_of", 404, false},
		"error without":    {"GET", "/containers/a", `{"error":"x"}`, "", 404, false},
		"error's fields":   {"GET", "/containers/a", `{"error":"x","more":1}`, "container_not_found", 404, false},
		"no route":         {"GET", "/nowhere", `{"error":"x"}`, "route_not_found", 404, true},
		"no route's 200":   {"GET", "/nowhere", `{}`, "", 200, false},
		"no method":        {"PATCH", "/containers", `{"error":"x"}`, "method_not_allowed", 405, true},
		"static before {}": {"GET", "/network/ports/random", `{"error":"x"}`, "no_available_ports", 404, true},
	} {
		resp := &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"x"}}}
		if c.code != "" {
			resp.Header.Set("X-Error-Code", c.code)
		}
		if c.status == 405 {
			resp.Header.Set("Allow", "GET")
		}
		err := check(Document(t), httptest.NewRequest(c.method, c.path, nil), resp, []byte(c.body))
		require.Equal(t, c.ok, err == nil, "%s: %v", name, err)
	}
}

func TestCheckRequest(t *testing.T) {
	for body, ok := range map[string]bool{
		`{"ttl":"1h","remove_on_use":null}`: true,
		``:                                  true,
		`{"ttl":5}`:                         false,
		`{"scopes":["everything"]}`:         false,
	} {
		req, err := http.NewRequest("POST", "http://berth/auth/tokens", strings.NewReader(body))
		require.NoError(t, err)
		resp := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"x"}}}
		answer := []byte(`{"token":"berth_0123456789abcdef0123456789abcdef","id":"0123456789abcdef0123456789abcdef","expires_at":"2023-11-14T23:13:20Z"}`)
		require.Equal(t, ok, check(Document(t), req, resp, answer) == nil, body)
	}
}
