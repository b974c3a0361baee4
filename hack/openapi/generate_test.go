package main

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"berth/api"
)

// TestDocumentIsCurrent fails if the code or hack/openapi has changed and the documents have not.
func TestDocumentIsCurrent(t *testing.T) {
	want, err := generate("../..")
	require.NoError(t, err)
	require.True(t, string(want) == string(api.Document), "api/openapi.yaml is not what the code says: go generate ./api")
	older, err := rendition(want)
	require.NoError(t, err)
	require.True(t, string(older) == string(api.Document30), "api/openapi-3.0.yaml is not what the code says: go generate ./api")
}

// TestRendition checks that the document of OpenAPI 3.0 is valid, and that each keyword of a
// schema that 3.0 writes in another way is rendered.
func TestRendition(t *testing.T) {
	loader := openapi3.NewLoader()
	document, err := loader.LoadFromData(api.Document30)
	require.NoError(t, err)
	require.Equal(t, "3.0.3", document.OpenAPI)
	require.NoError(t, document.Validate(loader.Context))
	require.NotNil(t, document.Extensions["x-webhooks"])

	for _, c := range []struct{ newer, older string }{
		{"a: {type: [string, 'null']}", "a: {type: string, nullable: true}"},
		{"a: {type: [string, 'null'], enum: [x]}", "a: {type: string, enum: [x, null], nullable: true}"},
		{"a: {oneOf: [{$ref: '#/b'}, {type: 'null'}]}", "a: {allOf: [{$ref: '#/b'}], nullable: true}"},
		{"a: {oneOf: [{type: string}, {type: number}]}", "a: {oneOf: [{type: string}, {type: number}]}"},
		{"a: {type: string, contentMediaType: application/zstd}", "a: {type: string, format: binary}"},
		{"a: {const: x}", "a: {enum: [x]}"},
		{"a: {type: string, examples: ['0644']}", "a: {type: string, example: '0644'}"},
		{"examples: {one: {value: {type: [a, 'null']}}}", "examples: {one: {value: {type: [a, 'null']}}}"},
		{"webhooks: {events: {}}", "x-webhooks: {events: {}}"},
	} {
		text, err := rendition([]byte(c.newer))
		require.NoError(t, err)
		require.YAMLEq(t, c.older, string(text), c.newer)
	}
}
