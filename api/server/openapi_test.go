package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/openapitest"
)

// TestTheDocumentAndTheRouterAgree in both directions, and about scopes.
func TestTheDocumentAndTheRouterAgree(t *testing.T) {
	h := newHarness(t)
	routed := map[string]bool{}
	for _, r := range h.server.front.Routes() {
		if r.Method != http.MethodHead {
			routed[r.Method+" "+braces(r.Path)] = true
		}
	}
	require.Equal(t, openapitest.Routes(t), routed)
	doc := openapitest.Document(t)
	for _, r := range h.server.table {
		operation := doc.Paths.Value(braces(r.path)).GetOperation(r.method)
		scope, _ := operation.Extensions["x-scope"].(string)
		require.Equal(t, string(r.scope), scope, r.path)
		require.Equal(t, r.is(public), operation.Security != nil && len(*operation.Security) == 0, r.path)
	}
}

// braces turns :id into {id}.
func braces(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if name, is := strings.CutPrefix(part, ":"); is {
			parts[i] = "{" + name + "}"
		}
	}
	return strings.Join(parts, "/")
}

func TestTheDocumentIsServed(t *testing.T) {
	h := newHarness(t)
	a := h.do(request{method: "GET", path: "/openapi.yaml", token: "-", accept: "-"})
	require.Equal(t, "application/yaml", a.header.Get("Content-Type"))
	require.True(t, strings.HasPrefix(a.raw, "openapi: 3.1.0"))
}
