package server

import (
	"fmt"
	"slices"
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

// TestVolumesOfRestrictedTokens: a token lists the volumes of its containers, in pages too.
func TestVolumesOfRestrictedTokens(t *testing.T) {
	h := newHarness(t)
	var own []string
	containers := []string{}
	for i := range 6 {
		volume := h.volume()
		name := fmt.Sprint("server-", i)
		h.container(name, volume)
		if i%2 == 0 {
			own, containers = append(own, volume), append(containers, name)
		}
	}
	h.must("PATCH", "/volumes/"+own[1], object{"labels": object{"customer": "42"}})
	slices.Sort(own)
	token := h.mint(object{"containers": append(containers, "server-0"), "scopes": []string{"read"}})
	list := func(query string) (ids []string, next string) {
		answer := h.do(request{method: "GET", path: "/volumes" + query, token: token})
		require.Equal(t, 200, answer.status)
		for _, v := range answer.json["volumes"].([]any) {
			require.Len(t, v.(object)["used_by"], 1)
			ids = append(ids, v.(object)["volume_id"].(string))
		}
		next, _ = answer.json["continue"].(string)
		return ids, next
	}
	all, next := list("")
	require.Equal(t, own, all)
	require.Empty(t, next)
	var paged []string
	query := "?limit=1"
	for range own {
		ids, next := list(query)
		paged, query = append(paged, ids...), "?limit=1&continue="+next
	}
	require.Equal(t, own, paged)
	labelled, _ := list("?label=customer=42")
	require.Len(t, labelled, 1)
	h.must("DELETE", "/containers/"+containers[0], nil)
	remaining, _ := list("")
	require.Len(t, remaining, 3, "a container uses its volume until it is gone")
}
