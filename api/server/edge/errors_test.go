package edge

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/openapitest"
)

// TestStatusesMatchOpenAPI compares the codes and statuses with those of the document.
func TestStatusesMatchOpenAPI(t *testing.T) {
	listed := map[v1.Code]bool{}
	for _, code := range openapitest.Document(t).Components.Headers["ErrorCode"].Value.Schema.Value.Enum {
		listed[v1.Code(code.(string))] = true
	}
	description := openapitest.Document(t).Components.Schemas["ErrorCode"].Value.Description
	for code, status := range statuses {
		require.True(t, listed[code], code)
		require.Contains(t, description, fmt.Sprintf("`%s` (%d): ", code, status))
		delete(listed, code)
	}
	require.Empty(t, listed, "codes that nobody uses")
}
