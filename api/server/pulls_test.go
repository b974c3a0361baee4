package server

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/storetest"
	"berth/store"
)

func TestPulls(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	at := "/volumes/" + volume
	ask := func(url, path string) object { return object{"url": url, "path": path} }
	h.refuse(403, "Downloads are switched off: set files.pull to true in the configuration", "POST", at+"/pull", ask("https://example.com/a", "a"))
	h.settings.change(func(c *v1.Config) { c.Files.Pull = true })
	const nonPublic = "url: must not be a private, loopback, link-local or other non-public address"
	for url, text := range map[string]string{
		"http://127.0.0.1/": nonPublic, "http://[::1]:80/": nonPublic, "https://10.1.2.3/": nonPublic, "http://169.254.169.254/latest": nonPublic,
		"http://[::ffff:8.8.8.8]/": nonPublic, "http://[64:ff9b::a00:1]/": nonPublic, "http://[fe80::1%25eth0]/": nonPublic, "http://0.0.0.0/": nonPublic,
		"ftp://example.com/": "url: must be an http or https URL of at most 4096 bytes", "file:///etc/passwd": "url: must be an http or https URL of at most 4096 bytes",
		"example.com": "url: must be an http or https URL of at most 4096 bytes", "http:///x": "url: must be an http or https URL of at most 4096 bytes",
		"http://a/" + strings.Repeat("x", 4096): "url: must be an http or https URL of at most 4096 bytes",
		"https://example.com:99999/":            "url: must have a port between 1 and 65535",
		"https://u:p@example.com/":              "url: must not have a user name or password: they would be stored and listed",
	} {
		h.refuse(400, text, "POST", at+"/pull", ask(url, "a"))
	}
	h.refuse(400, "Invalid path: path traversal detected", "POST", at+"/pull", ask("https://example.com/", "../a"))
	h.refuse(400, "checksum: must be sha256: and 64 lowercase hexadecimal digits", "POST", at+"/pull", object{"url": "https://example.com/", "path": "a", "checksum": "md5:0"})
	h.refuse(400, "url: is required; path: is required", "POST", at+"/pull", object{})
	h.refuse(404, "Volume not found", "POST", "/volumes/00000000/pull", ask("https://example.com/", "a"))

	h.refuse(400, "Invalid path: path traversal detected", "POST", at+"/pull", ask("https://example.com/%2e%2e", "mods/"))
	h.refuse(400, "path: names a folder: append the name of the file", "POST", at+"/pull", ask("https://example.com/", "mods/"))
	for url, path := range map[string]string{"https://example.com/x/a%20b.jar?c=d/e#f/g": "mods/a b.jar", "https://example.com/%ff": `mods/\xff`} {
		id := h.must("POST", at+"/pull", ask(url, "mods/")).json["pull_id"].(string)
		require.NoError(t, h.store.Update(func(tx *store.Tx) error {
			p, err := store.Pulls.Get(tx, id)
			require.Equal(t, path, p.Spec.Path)
			return errors.Join(err, store.Pulls.Purge(tx, id))
		}))
	}

	first := h.must("POST", at+"/pull", ask("https://example.com/1", "a")).json
	require.Equal(t, "Download started", first["message"])
	id := first["pull_id"].(string)
	second := h.must("POST", at+"/pull", ask("https://example.com/2?signature=secret#f", "a")).json["pull_id"].(string)
	require.NoError(t, h.store.Update(func(tx *store.Tx) error {
		return store.Pulls.SetStatus(tx, id, func(s *v1.PullStatus) { s.State, s.Message = v1.PullFailed, "the server answered 404" })
	}))
	list := h.must("GET", at+"/pulls", nil).json["pulls"].([]any)
	require.Len(t, list, 2)
	newest, oldest := list[0].(object), list[1].(object)
	require.Equal(t, object{"pull_id": second, "url": "https://example.com/2?***#***", "path": "a", "state": "pending", "progress": object{"bytes": 0.0, "total": nil}, "message": nil}, newest)
	require.Equal(t, []any{"failed", "the server answered 404"}, []any{oldest["state"], oldest["message"]})

	other := h.volume()
	h.refuse(404, "Download not found", "DELETE", "/volumes/"+other+"/pulls/"+second, nil)
	h.refuse(404, "Download not found", "DELETE", at+"/pulls/none", nil)
	h.must("DELETE", at+"/pulls/"+second, nil)
	h.must("DELETE", at+"/pulls/"+id, nil)
	tx := h.store.Read()
	p, err := store.Pulls.Get(tx, second)
	require.True(t, p.Spec.Cancel)
	ended, err2 := store.Pulls.Get(tx, id)
	require.False(t, ended.Spec.Cancel, "it has ended")
	require.NoError(t, err2)
	require.NoError(t, err)
	for i := 1; i < 100; i++ {
		h.must("POST", at+"/pull", ask("https://example.com/", fmt.Sprint("f", i)))
	}
	a := h.call("POST", at+"/pull", ask("https://example.com/", "x"))
	require.Equal(t, []any{429, "too_many_pulls"}, []any{a.status, a.header.Get("X-Error-Code")})
	h.settings.change(func(c *v1.Config) { c.Files.PullPrivate = true })
	h.must("POST", "/volumes/"+other+"/pull", ask("http://127.0.0.1/", "a"))
}

// TestPullsAccess: the scope is files, and another tenant's volume does not exist.
func TestPullsAccess(t *testing.T) {
	h := newHarness(t)
	h.settings.change(func(c *v1.Config) { c.Files.Pull = true })
	mine, theirs := h.volume(), h.volume()
	h.container("mc", mine)
	token := h.mint(object{"scopes": []string{"files"}, "containers": []string{"mc"}})
	read := h.mint(object{"scopes": []string{"read"}})
	body := `{"url":"https://example.com/","path":"a"}`
	require.Equal(t, 200, h.do(request{method: "POST", path: "/volumes/" + mine + "/pull", token: token, body: body}).status)
	require.Equal(t, 404, h.do(request{method: "POST", path: "/volumes/" + theirs + "/pull", token: token, body: body}).status)
	require.Equal(t, 404, h.do(request{method: "GET", path: "/volumes/" + theirs + "/pulls", token: token}).status)
	require.Equal(t, 403, h.do(request{method: "POST", path: "/volumes/" + mine + "/pull", token: read, body: body}).status)
	require.Equal(t, 200, h.do(request{method: "GET", path: "/volumes/" + mine + "/pulls", token: read}).status)
	require.Equal(t, 403, h.do(request{method: "DELETE", path: "/volumes/" + mine + "/pulls/x", token: read}).status)
	entry := h.must("GET", "/audit?limit=1000", nil).raw
	require.Contains(t, entry, `"action":"pull.create"`)
	require.Contains(t, entry, `"object":"`+mine+`/a"`)
}

// TestDamagedPull: one whose record cannot be read stops neither the list nor new ones.
func TestDamagedPull(t *testing.T) {
	h := newHarness(t)
	h.settings.change(func(c *v1.Config) { c.Files.Pull = true })
	volume := h.volume()
	at := "/volumes/" + volume
	require.NoError(t, h.store.Update(func(tx *store.Tx) error {
		return errors.Join(store.Pulls.Create(tx, "damaged", v1.PullSpec{VolumeID: volume}), storetest.Damage(tx, "pull", "damaged"))
	}))
	h.must("POST", at+"/pull", object{"url": "https://example.com/1", "path": "a"})
	require.Len(t, h.must("GET", at+"/pulls", nil).json["pulls"], 1)
}
