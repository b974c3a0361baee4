package server

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
)

// walk gets a list page by page, and returns its items.
func walk(h *harness, path, name string, between func(page int)) (items []any) {
	h.t.Helper()
	next := ""
	for page := 0; ; page++ {
		body := h.must("GET", path+next, nil).json
		list := body[name].([]any)
		items = append(items, list...)
		if body["continue"] == nil {
			return items
		}
		require.Len(h.t, list, 2)
		next = "&continue=" + body["continue"].(string)
		if between != nil {
			between(page)
		}
	}
}

// TestListsInPages: the pages of each list are the list.
func TestListsInPages(t *testing.T) {
	h := newHarness(t)
	h.ports(1000, 1001, 1002, 1003, 1004)
	h.must("POST", "/network/ports", object{"ip": "::1", "port": 5, "protocol": "udp"})
	h.must("POST", "/network/ports", object{"ip": "127.0.0.1", "port": 1001, "protocol": "udp"})
	for _, id := range []string{"a", "a-b", "a.b", "b", "a-", "Z"} {
		h.container(id, h.volume())
		h.must("POST", "/auth/tokens", object{"ttl": "1h"})
	}
	for _, port := range []int{1000, 1003} {
		h.must("POST", "/containers", object{"internal_id": fmt.Sprint("on-", port), "image": "busybox:1", "volume_id": h.volume(),
			"ports": []object{{"ip": "127.0.0.1", "port": port, "protocol": "tcp"}}})
	}
	h.volume()
	for path, name := range map[string]string{"/containers": "containers", "/volumes": "volumes", "/network/ports": "ports", "/auth/tokens": "tokens"} {
		all := h.must("GET", path, nil).json
		require.NotContains(t, all, "continue", path)
		require.GreaterOrEqual(t, len(all[name].([]any)), 6, path)
		require.Equal(t, all[name], walk(h, path+"?limit=2", name, nil), path)
		exact := h.must("GET", fmt.Sprintf("%s?limit=%d", path, len(all[name].([]any))), nil).json
		require.Equal(t, all, exact, path)
	}
	require.Len(t, h.must("GET", "/containers?limit=1&stats=true", nil).json["containers"], 1)
}

// TestPagesWhileObjectsChange: a continuation holds although its object is gone, and
// new objects behind it appear.
func TestPagesWhileObjectsChange(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		h.container(id, volume)
	}
	var ids []string
	for _, item := range walk(h, "/containers?limit=2", "containers", func(page int) {
		if page == 0 {
			h.purge("b")
			h.container("aa", volume)
			h.container("cc", volume)
		}
	}) {
		ids = append(ids, item.(object)["internal_id"].(string))
	}
	require.Equal(t, []string{"a", "b", "c", "cc", "d", "e"}, ids)
}

func TestPagesObeyLabelsAndTokens(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	for i := range 9 {
		h.must("POST", "/containers", object{"internal_id": fmt.Sprint("c", i), "image": "i", "volume_id": volume, "labels": object{"odd": fmt.Sprint(i % 2)}})
	}
	require.Len(t, walk(h, "/containers?label=odd=1&limit=2", "containers", nil), 4)
	token := h.must("POST", "/auth/tokens", object{"ttl": "1h", "scopes": []string{"read"}, "containers": []string{"c3", "c7"}}).json["token"].(string)
	a := h.do(request{method: "GET", path: "/containers?limit=1", token: token})
	require.Equal(t, "c3", a.json["containers"].([]any)[0].(object)["internal_id"])
	a = h.do(request{method: "GET", path: "/containers?limit=1&continue=" + a.json["continue"].(string), token: token})
	require.Equal(t, "c7", a.json["containers"].([]any)[0].(object)["internal_id"])
	require.NotContains(t, a.json, "continue")
}

func TestInvalidPages(t *testing.T) {
	h := newHarness(t)
	const bad = "continue: must be the value of a response to this list"
	encoded := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for _, path := range []string{"/containers", "/volumes", "/network/ports", "/auth/tokens"} {
		for _, limit := range []string{"0", "-1", "1001", "x", "1.5"} {
			h.refuse(400, "limit: must be a number between 1 and 1000", "GET", path+"?limit="+limit, nil)
		}
		for _, text := range []string{"*", "abc", encoded("2:a"), encoded("1:"), encoded("1:a\x00"), encoded("1:" + strings.Repeat("a", 400)), encoded("1:a") + "="} {
			h.refuse(400, bad, "GET", path+"?continue="+text, nil)
		}
	}
	for _, text := range []string{"1:a", "1:127.0.0.1/x/tcp", "1:127.0.0.1/1/sctp", "1:300.0.0.1/1/tcp", "1:127.0.0.1/1/tcp/"} {
		h.refuse(400, bad, "GET", "/network/ports?continue="+encoded(text), nil)
	}
}

func TestVolumeNamesAndLabels(t *testing.T) {
	h := newHarness(t)
	id := h.must("POST", "/volumes", object{"name": "Überleben", "labels": object{"customer": "42"}, "size_limit": 1000}).json["volume_id"].(string)
	other := h.volume()
	got := h.must("GET", "/volumes/"+id, nil).json
	require.Equal(t, "Überleben", got["name"])
	require.Equal(t, object{"customer": "42"}, got["labels"])
	require.Equal(t, object{}, h.must("GET", "/volumes/"+other, nil).json["labels"])
	found := h.must("GET", "/volumes?label=customer=42", nil).json["volumes"].([]any)
	require.Len(t, found, 1)
	require.Equal(t, got, found[0])
	require.Empty(t, h.must("GET", "/volumes?label=customer=43", nil).json["volumes"])
	h.refuse(400, "label: must be name=value or a name", "GET", "/volumes?label==", nil)

	require.Equal(t, "creative", h.must("PATCH", "/volumes/"+id, object{"name": "creative"}).json["name"])
	got = h.must("PATCH", "/volumes/"+id[:8], object{"labels": object{"world": "1"}}).json
	require.Equal(t, []any{"creative", object{"world": "1"}, 1000.0}, []any{got["name"], got["labels"], got["size_limit"]})
	got = h.must("PATCH", "/volumes/"+id, object{"name": "", "labels": object{}}).json
	require.Equal(t, []any{"", object{}}, []any{got["name"], got["labels"]})

	const badName = "name: must be at most 128 printable characters"
	h.refuse(400, badName, "POST", "/volumes", object{"name": "a\nb"})
	h.refuse(400, badName+"; labels.io.berth.x: must not begin with io.berth.", "PATCH", "/volumes/"+id, object{"name": strings.Repeat("x", 129), "labels": object{"io.berth.x": ""}})
	h.refuse(404, "Volume not found", "PATCH", "/volumes/12345678", object{"name": "x"})
	require.NoError(t, intent.DeleteVolume(h.store, id))
	require.Len(t, h.must("GET", "/volumes", nil).json["volumes"], 1)
	h.refuse(404, "Volume not found", "PATCH", "/volumes/"+id, object{"name": "x"})
}
