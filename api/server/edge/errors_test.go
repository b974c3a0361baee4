package edge

import (
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/openapitest"
)

// TestStatusesMatchOpenAPI compares the codes with those of the document.
func TestStatusesMatchOpenAPI(t *testing.T) {
	listed := map[v1.Code]bool{}
	for _, code := range openapitest.Document(t).Components.Headers["ErrorCode"].Value.Schema.Value.Enum {
		listed[v1.Code(code.(string))] = true
	}
	for code := range statuses {
		require.True(t, listed[code], code)
		delete(listed, code)
	}
	require.Empty(t, listed, "codes that nobody uses")
}
