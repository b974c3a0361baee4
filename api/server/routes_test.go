package server

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/openapitest"
)

// TestRoutesMatchOpenAPI compares routes, scopes and authentication with the document.
func TestRoutesMatchOpenAPI(t *testing.T) {
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
		require.Equal(t, !r.is(public|anyAccept), operation.Parameters.GetByInAndName("header", "Accept") != nil, r.path)
		require.Equal(t, r.is(queryToken), operation.Parameters.GetByInAndName("query", "token") != nil, r.path)
		require.Equal(t, r.is(nodeWide), strings.Contains(operation.Description, "Not for tokens that are limited to containers."), r.path)
		require.Equal(t, r.is(orRead), strings.Contains(operation.Description, "or `read`"), r.path)
	}
}

// braces converts :id to {id}.
func braces(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if name, is := strings.CutPrefix(part, ":"); is {
			parts[i] = "{" + name + "}"
		}
	}
	return strings.Join(parts, "/")
}

// TestParametersMatchOpenAPI compares the query parameters of every route with the document.
func TestParametersMatchOpenAPI(t *testing.T) {
	h, doc := newHarness(t), openapitest.Document(t)
	for _, r := range h.server.table {
		documented := []string{}
		for _, p := range doc.Paths.Value(braces(r.path)).GetOperation(r.method).Parameters {
			if p.Value.In == "query" {
				documented = append(documented, p.Value.Name)
			}
		}
		if r.query == anyQuery {
			probe := slices.Contains([]string{"/api/v1/public/ping", "/healthz", "/readyz", metricsPath}, r.path)
			require.True(t, probe || strings.HasPrefix(r.path, uiPath), r.path)
			require.Empty(t, documented, r.path)
			continue
		}
		require.ElementsMatch(t, documented, r.parameters(), r.method+" "+r.path)
	}
}
