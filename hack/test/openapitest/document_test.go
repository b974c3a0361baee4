package openapitest

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// operations returns every operation of the document, webhooks included, by a name
// such as "GET /containers".
func operations(t *testing.T) map[string]*openapi3.Operation {
	t.Helper()
	all := map[string]*openapi3.Operation{}
	for path, item := range Document(t).Paths.Map() {
		for method, operation := range item.Operations() {
			all[method+" "+path] = operation
		}
	}
	for name, item := range Document(t).Webhooks {
		for method, operation := range item.Operations() {
			all[method+" webhook "+name] = operation
		}
	}
	return all
}

// content is a request or response body of an operation.
type content struct {
	name string
	*openapi3.MediaType
	json bool
}

// contents returns the bodies of an operation: the request's, and those of responses
// that are no error.
func contents(name string, operation *openapi3.Operation) (list []content) {
	add := func(name string, bodies openapi3.Content) {
		for kind, media := range bodies {
			list = append(list, content{name, media, kind == "application/json"})
		}
	}
	if body := operation.RequestBody; body != nil {
		add(name+" request", body.Value.Content)
	}
	for status, response := range operation.Responses.Map() {
		if response.Ref == "" {
			add(name+" "+status, response.Value.Content)
		}
	}
	return list
}

func TestOperations(t *testing.T) {
	id := regexp.MustCompile(`^[a-z]+([A-Z][A-Za-z]*)?$`)
	used := map[string]string{}
	for name, operation := range operations(t) {
		require.Regexp(t, id, operation.OperationID, name)
		require.Empty(t, used[operation.OperationID], name)
		used[operation.OperationID] = name
		require.NotEmpty(t, operation.Summary, name)
		require.NotContains(t, operation.Summary, ".", name)
		require.Greater(t, len(operation.Description), len("Returns."), name)
		require.Len(t, operation.Tags, 1, name)
		for _, p := range operation.Parameters {
			require.NotEmpty(t, p.Value.Description, "%s %s", name, p.Value.Name)
		}
		if scope, is := operation.Extensions["x-scope"].(string); is {
			require.Contains(t, v1.Scopes(), v1.Scope(scope), name)
			require.Contains(t, operation.Description, "Needs the scope `"+scope+"`", name)
		}
		require.True(t, succeeds(operation), "%s has no response of success", name)
	}
}

func succeeds(operation *openapi3.Operation) bool {
	for status := range operation.Responses.Map() {
		if status[0] == '2' || status == "101" {
			return true
		}
	}
	return false
}

// TestExamples checks that each body has an example, and that each example is valid
// for its schema, which is a component.
func TestExamples(t *testing.T) {
	for name, operation := range operations(t) {
		for _, c := range contents(name, operation) {
			values := exampleValues(c.MediaType)
			require.NotEmpty(t, values, c.name)
			if !c.json {
				continue
			}
			component, is := strings.CutPrefix(c.Schema.Ref, "#/components/schemas/")
			require.True(t, is, "the schema of %s is no component", c.name)
			for _, value := range values {
				text, err := json.Marshal(value)
				require.NoError(t, err)
				CheckValue(t, component, text)
			}
		}
	}
	for status, response := range Document(t).Components.Responses {
		require.NotEmpty(t, exampleValues(response.Value.Content["application/json"]), status)
	}
}

func exampleValues(media *openapi3.MediaType) (values []any) {
	if media.Example != nil {
		values = append(values, media.Example)
	}
	for _, example := range media.Examples {
		values = append(values, example.Value.Value)
	}
	return values
}

// TestSchemasAreDescribed checks that each component has a description, and that no
// field of a request has a default, which generators take for a required field.
func TestSchemasAreDescribed(t *testing.T) {
	for name, schema := range Document(t).Components.Schemas {
		require.NotEmpty(t, schema.Value.Description, name)
		for field, property := range schema.Value.Properties {
			require.Nil(t, property.Value.Default, "%s.%s", name, field)
		}
	}
}

func TestWebhookAndVendorHeaderAreDocumented(t *testing.T) {
	require.NotNil(t, Document(t).Webhooks["events"].Post.RequestBody)
	require.Contains(t, Document(t).Components.SecuritySchemes["token"].Value.Description, "`Accept: Application/vnd.berthv1+json`")
}
