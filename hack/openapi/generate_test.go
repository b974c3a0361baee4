package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api"
)

// TestDocumentIsCurrent fails if the code or hack/openapi has changed and the document has not.
func TestDocumentIsCurrent(t *testing.T) {
	want, err := generate("../..")
	require.NoError(t, err)
	require.True(t, string(want) == string(api.Document), "api/openapi.yaml is not what the code says: go generate ./api")
}
