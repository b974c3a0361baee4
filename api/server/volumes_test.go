package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVolumes(t *testing.T) {
	h := newHarness(t)
	a := h.must("POST", "/volumes", nil)
	require.Equal(t, 201, a.status)
	id := a.json["volume_id"].(string)
	require.Equal(t, map[string]any{"volume_id": id, "path": "/data/volumes/" + id}, a.json)
	limited := h.must("POST", "/volumes", object{"size_limit": 1024}).json["volume_id"].(string)
	h.container("mc", id)
	got := h.must("GET", "/volumes/"+id[:8], nil).json
	require.Equal(t, []any{"mc"}, got["used_by"])
	require.Equal(t, 0.0, got["size"])
	require.Contains(t, got, "created_at")
	require.Equal(t, 1024.0, h.must("GET", "/volumes/"+limited, nil).json["size_limit"])
	require.Len(t, h.must("GET", "/volumes", nil).json["volumes"], 2)
	h.refuse(409, "Volume is in use by container mc", "DELETE", "/volumes/"+id, nil)
	require.Equal(t, "Volume deleted successfully", h.must("DELETE", "/volumes/"+limited, nil).json["message"])
	h.refuse(404, "Volume not found", "GET", "/volumes/"+limited, nil)
	h.refuse(404, "Volume not found", "DELETE", "/volumes/x", nil)
	h.refuse(400, "size_limit: must not be negative", "POST", "/volumes", object{"size_limit": -1})
	h.refuse(400, "size_limit: must be an integer", "POST", "/volumes", object{"size_limit": "1"})
}
