package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

const rotatedToken = "berth_ffffffffffffffffffffffffffffffff"

// mintWith mints a token with another one.
func mintWith(h *harness, token, body string) answer {
	h.t.Helper()
	return h.do(request{method: "POST", path: "/auth/tokens", token: token, body: body})
}

// statusOf returns the status of a request with a token.
func statusOf(h *harness, token string) int {
	h.t.Helper()
	return h.do(request{method: "GET", path: "/containers", token: token}).status
}

// onlyToken returns the only token in the list.
func onlyToken(h *harness) map[string]any {
	h.t.Helper()
	list := h.must("GET", "/auth/tokens", nil).json["tokens"].([]any)
	require.Len(h.t, list, 1)
	return list[0].(map[string]any)
}

func rotate(h *harness, token v1.Secret) {
	h.settings.change(func(c *v1.Config) { c.Authorization.Token = token })
}

func TestRevokeRemovesChildren(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	parent := h.mint(object{})
	id := onlyToken(h)["id"].(string)
	child := mintWith(h, parent, "{}").json["token"].(string)
	grandchild := mintWith(h, child, "{}").json["token"].(string)
	other := h.mint(object{})
	c, _, err := h.dialSocket("/ws/mc?tail=0&token="+grandchild, nil)
	require.NoError(t, err)
	c.next()
	h.must("DELETE", "/auth/tokens/"+id, nil)
	for name, token := range map[string]string{"parent": parent, "child": child, "grandchild": grandchild} {
		require.Equal(t, 401, statusOf(h, token), name)
		require.Equal(t, 401, mintWith(h, token, "{}").status, name)
	}
	require.Equal(t, 200, statusOf(h, other))
	code, _ := c.closed()
	require.Equal(t, 1008, code)
	require.Len(t, h.must("GET", "/auth/tokens", nil).json["tokens"], 1, "tokens minted with it are not in the list")
}

func TestRotationEndsSessions(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	token := h.mint(object{})
	minted, _, err := h.dialSocket("/ws/mc?tail=0&token="+token, nil)
	require.NoError(t, err)
	minted.next()
	own := h.open("/ws/mc?tail=0")
	own.next()
	rotate(h, rotatedToken)
	require.Equal(t, 401, statusOf(h, token))
	require.Equal(t, 401, statusOf(h, adminToken))
	for _, c := range []*client{minted, own} {
		code, reason := c.closed()
		require.Equal(t, 1008, code)
		require.Equal(t, "token is revoked", reason)
	}
	require.Equal(t, 200, statusOf(h, rotatedToken))
	list := h.do(request{method: "GET", path: "/auth/tokens", token: rotatedToken})
	require.Empty(t, list.json["tokens"])
}

func TestRevokeSpentToken(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	token := h.mint(object{"remove_on_use": true})
	require.Equal(t, false, onlyToken(h)["spent"])
	c, _, err := h.dialSocket("/ws/mc?tail=0&token="+token, nil)
	require.NoError(t, err)
	c.next()
	require.Equal(t, 401, statusOf(h, token), "it is spent")
	require.Equal(t, true, onlyToken(h)["spent"])
	h.must("DELETE", "/auth/tokens/"+onlyToken(h)["id"].(string), nil)
	code, reason := c.closed()
	require.Equal(t, 1008, code)
	require.Equal(t, "token is revoked", reason)
}

func TestTokenIsBoundToContainer(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	h.container("mc", volume)
	h.phase("mc", v1.Ready)
	uid := h.must("GET", "/containers/mc", nil).json["uid"]
	require.NotEmpty(t, uid)
	token := h.mint(object{"containers": []string{"mc"}})
	get := func(path string) int { return h.do(request{method: "GET", path: path, token: token}).status }
	require.Equal(t, 200, get("/containers/mc"))
	require.Equal(t, 200, get("/volumes/"+volume))
	require.Equal(t, 404, h.call("POST", "/auth/tokens", object{"containers": []string{"later"}}).status)

	h.must("DELETE", "/containers/mc", nil)
	h.purge("mc")
	h.container("mc", volume)
	h.phase("mc", v1.Ready)
	require.NotEqual(t, uid, h.must("GET", "/containers/mc", nil).json["uid"])
	for _, path := range []string{"/containers/mc", "/containers/mc/logs", "/containers/mc/stats", "/volumes/" + volume} {
		require.Equal(t, 404, get(path), path)
	}
	require.Equal(t, 404, h.do(request{method: "POST", path: "/containers/mc/start", token: token}).status)
	require.Equal(t, 404, h.do(request{method: "POST", path: "/containers/mc/command", token: token, body: `{"command":"x"}`}).status)
	for _, path := range []string{"/containers", "/volumes", "/events"} {
		a := h.do(request{method: "GET", path: path, token: token})
		require.NotContains(t, a.raw, "mc", path)
	}
	_, resp, err := h.dialSocket("/ws/mc?token="+token, nil)
	require.Error(t, err)
	require.Equal(t, 404, resp.StatusCode)

	fresh := h.mint(object{"containers": []string{"mc"}})
	events := h.do(request{method: "GET", path: "/events", token: fresh}).json["events"].([]any)
	require.Len(t, events, 1, "those of the container before it are not its own")
}

func TestDownloadEndsWithToken(t *testing.T) {
	const size = 16 << 30
	for name, single := range map[string]bool{"lasting": false, "of one use": true} {
		t.Run(name, func(t *testing.T) {
			h := newFileHarness(t)
			h.put("big", "")
			require.NoError(t, os.Truncate(filepath.Join(h.dir, "big"), size))
			token := h.mint(object{"remove_on_use": single})
			resp, err := http.Get(h.base + h.at("files/content", "path", "big", "token", token))
			require.NoError(t, err)
			defer resp.Body.Close()
			require.Equal(t, 200, resp.StatusCode)
			h.must("DELETE", "/auth/tokens/"+onlyToken(h.harness)["id"].(string), nil)
			_, err = io.Copy(io.Discard, resp.Body)
			require.Error(t, err, "it is cut off")
		})
	}
}

func TestUploadEndsWithToken(t *testing.T) {
	h := newFileHarness(t)
	token := h.mint(object{})
	body, pipe := io.Pipe()
	req, err := http.NewRequest("PUT", h.base+h.at("files/content", "path", "new"), body)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	ended := make(chan error, 1)
	go func() {
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			err = fmt.Errorf("answered %d", resp.StatusCode)
			resp.Body.Close()
		}
		ended <- err
	}()
	for range 100 { // the upload is in flight
		_, err = pipe.Write(make([]byte, 64<<10))
		require.NoError(t, err)
	}
	h.must("DELETE", "/auth/tokens/"+onlyToken(h.harness)["id"].(string), nil)
	for err == nil { // the client goes on until it notices
		_, err = pipe.Write(make([]byte, 64<<10))
	}
	require.NotEqual(t, "answered 200", (<-ended).Error())
	require.NoFileExists(t, filepath.Join(h.dir, "new"))
}

// TestBodyOutlivesToken holds back the end of a body until its token is revoked, or
// until its container was replaced by another one.
func TestBodyOutlivesToken(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(h *harness, volume string)
		want      string
	}{
		"nothing":    {func(*harness, string) {}, "200"},
		"revocation": {func(h *harness, _ string) { h.must("DELETE", "/auth/tokens/"+onlyToken(h)["id"].(string), nil) }, "401"},
		"rotation":   {func(h *harness, _ string) { rotate(h, rotatedToken) }, "401"},
		"another container": {func(h *harness, volume string) {
			h.must("DELETE", "/containers/mc", nil)
			h.purge("mc")
			h.container("mc", volume)
		}, "404"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			volume := h.volume()
			h.container("mc", volume)
			h.phase("mc", v1.Ready)
			token := h.mint(object{"containers": []string{"mc"}, "remove_on_use": true})
			conn, err := net.Dial("tcp", strings.TrimPrefix(h.base, "http://"))
			require.NoError(t, err)
			defer conn.Close()
			body := `{"command":"x"` + strings.Repeat(" ", 64<<10) + "}"
			_, err = fmt.Fprintf(conn, "POST /containers/mc/command HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nAccept: %s\r\nContent-Length: %d\r\n\r\n%s",
				token, vendorType, len(body), body[:32<<10])
			require.NoError(t, err)
			require.Eventually(t, func() bool { // its handler has begun
				list, _ := h.must("GET", "/auth/tokens", nil).json["tokens"].([]any)
				return len(list) == 0 || list[0].(map[string]any)["spent"] == true
			}, time.Minute, 5*time.Millisecond)
			c.meanwhile(h, volume)
			_, err = io.WriteString(conn, body[32<<10:])
			require.NoError(t, err)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			resp.Body.Close()
			require.Equal(t, c.want, fmt.Sprint(resp.StatusCode))
		})
	}
}

func TestReplacedTokenClosesSockets(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	c := h.open("/ws/mc?tail=0")
	c.next()
	h.settings.change(func(c *v1.Config) { c.Authorization.Token = "berth_ffffffffffffffffffffffffffffffff" })
	code, _ := c.closed()
	require.Equal(t, 1008, code)
}
