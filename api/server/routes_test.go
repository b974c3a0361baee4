package server

import (
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/openapitest"
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
		require.Nil(t, operation.Parameters.GetByInAndName("header", "Accept"), "generators ignore it, or require it in each call")
		require.Equal(t, r.is(queryToken), operation.Parameters.GetByInAndName("query", "token") != nil, r.path)
		require.Equal(t, r.is(nodeWide), strings.Contains(operation.Description, "Not for tokens that are limited to containers."), r.path)
		require.Equal(t, r.is(orRead), strings.Contains(operation.Description, "or `read`"), r.path)
	}
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

// TestScopesInDocument compares the table of scopes, and the list of links, in
// hack/docs/panel.md with the table of routes.
func TestScopesInDocument(t *testing.T) {
	h, doc := newHarness(t), openapitest.Document(t)
	named := map[string]string{} // the scope of each operation that the table names
	rows := regexp.MustCompile("(?m)^\\| `?(\\w+)`? \\| [^|]* \\| (.*) \\|$").FindAllStringSubmatch(section(t, "Scopes"), -1)
	for _, row := range rows {
		for _, operation := range quoted(row[2]) {
			require.NotContains(t, named, operation)
			named[operation] = row[1]
		}
	}
	links := quoted(regexp.MustCompile(`(?s)vendor header:(.*?)\n\n`).FindString(section(t, "Links and tickets")))
	for _, r := range h.server.table {
		id := doc.Paths.Value(braces(r.path)).GetOperation(r.method).OperationID
		require.Equal(t, r.is(queryToken), slices.Contains(links, id), "links of hack/docs/panel.md: %s", id)
		if r.is(public) || r.scope == v1.ScopeRead {
			require.NotContains(t, named, id, "only the row of read leaves its operations out")
			continue
		}
		want := string(r.scope)
		if want == "" {
			want = "none"
		}
		require.Equal(t, want, named[id], "scopes of hack/docs/panel.md: %s", id)
		delete(named, id)
	}
	require.Empty(t, named, "hack/docs/panel.md names operations that are not there")
	for _, scope := range v1.Scopes() {
		require.True(t, slices.ContainsFunc(rows, func(row []string) bool { return row[1] == string(scope) }), "hack/docs/panel.md lacks the scope %s", scope)
	}
}

// section returns a section of hack/docs/panel.md.
func section(t *testing.T, title string) string {
	t.Helper()
	text, err := os.ReadFile("../../hack/docs/panel.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "\n### "+title+"\n")
	require.True(t, found, title)
	rest, _, _ = strings.Cut(rest, "\n### ")
	return rest
}

// quoted returns the names in backticks.
func quoted(text string) (names []string) {
	for _, found := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	return names
}
