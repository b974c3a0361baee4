package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// TestAPoolEntryCanBeSentBack: what random gives goes into a creation as it is.
func TestAPoolEntryCanBeSentBack(t *testing.T) {
	h := newHarness(t)
	h.ports(1000)
	entry := h.must("GET", "/network/ports/random", nil).json
	require.Contains(t, entry, "in_use")
	h.must("POST", "/containers", object{"internal_id": "mc", "image": "busybox:1", "volume_id": h.volume(), "ports": []any{entry}})
	require.Equal(t, "mc", h.must("GET", "/network/ports/127.0.0.1/1000", nil).json["container"])
	h.phase("mc", v1.Ready)
	entry = h.must("GET", "/network/ports/127.0.0.1/1000", nil).json
	h.must("POST", "/containers/mc/rebind-network", object{"ports": []any{entry}})
	h.must("POST", "/containers/mc/rebind-network", object{"ports": []any{}})
	require.EqualValues(t, 1, h.must("POST", "/network/ports/bulk-delete", object{"ports": []any{entry}}).json["deleted_count"])
	h.must("POST", "/network/ports", entry)
	h.refuse(400, "inUse: unknown field", "POST", "/network/ports", object{"ip": "127.0.0.1", "port": 1, "protocol": "tcp", "inUse": true})
}
