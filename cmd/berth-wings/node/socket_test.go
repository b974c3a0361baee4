package node_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/paneltest"
)

// beta is a server that the tokens of some tests name.
const beta = "b2b2b2b2-2222-4222-8222-b2b2b2b2b2b2"

// token returns a token for the socket of alpha. more are claims.
func token(t *testing.T, permissions []string, more map[string]any) string {
	claims := map[string]any{"server_uuid": alpha, "scope": "websocket", "permissions": permissions, "unique_id": t.Name()}
	for name, value := range more {
		claims[name] = value
	}
	return paneltest.Sign(t, claims)
}

// open opens a socket of alpha and authenticates it.
func (w *world) open(t *testing.T, permissions ...string) *paneltest.Socket {
	t.Helper()
	s, status := w.Dial(t, alpha, w.panel.URL)
	require.Equal(t, 101, status)
	s.Send("auth", token(t, permissions, nil))
	s.Want("auth success", "")
	return s
}

// TestSocket is the console of an owner, from the first token to the end of the server.
func TestSocket(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	s, status := w.Dial(t, alpha, w.panel.URL)
	require.Equal(t, 101, status)
	s.Send("send stats", nil)
	s.Want("jwt error", "jwt: no jwt present")
	s.Send("auth", "rubbish")
	s.Want("daemon error", "an unexpected error was encountered while handling this request")
	all := token(t, []string{"*"}, nil)
	s = w.open(t, "*")
	s.Want("status", "offline")
	s.Send("send logs", nil) // while it is offline there are none
	s.Send("set state", "start")
	s.Want("status", "starting")
	s.Until("status", "running")
	s.Send("send command", "he", "llo")
	require.Contains(t, s.Until("console output", "got hello"), paneltest.Event{Event: "console output", Args: []string{"hello"}}, "the terminal's echo")
	s.Send("auth", all)
	s.Want("auth success", "")
	w.unmarked(t)
	s.Send("set state", "start")
	s.Want("daemon error", "an unexpected error was encountered") // the reason is for administrators

	// Another browser has the history once, and what follows it.
	other := w.open(t, "*", "admin.websocket.errors")
	other.Want("status", "running")
	other.Send("send logs", nil)
	lines := other.Until("console output", "got hello")
	require.Equal(t, "got hello", lines[len(lines)-1].Argument())
	s.Send("send command", "next")
	require.Len(t, other.Until("console output", "got next"), 2)
	other.Send("set state", "start")
	other.Want("daemon error", "server is running")
	s.Until("console output", "got next")
	s.Send("send logs", nil) // it was sent all of them when they were printed
	s.Send("send command", "last")
	require.Len(t, s.Until("console output", "got last"), 2)

	// The stop command is a stop: the server stays stopped although its exit would count as a crash.
	s.Send("send command", "stop")
	s.Until("status", "stopping")
	s.Until("status", "offline")
	var events []string
	for n := 1; len(events) < 5; n++ {
		var sent struct{ Data []map[string]any }
		require.NoError(t, json.Unmarshal([]byte(w.panel.Await(t, "POST /activity", n).Body), &sent))
		for _, e := range sent.Data {
			require.Equal(t, alpha, e["server"])
			require.Equal(t, paneltest.User, e["user"])
			require.Equal(t, "127.0.0.1", e["ip"])
			if e["event"] != "server:power.start" {
				events = append(events, e["metadata"].(map[string]any)["command"].(string))
			} else if len(events) == 0 {
				events = append(events, "start")
			}
		}
	}
	require.Equal(t, []string{"start", "hello", "next", "last", "stop"}, events)

	w.panel.SetServer(t, w.server(`"suspended": true, `))
	w.Want(t, 204, "POST", "/api/servers/"+alpha+"/sync", nil)
	code, _ := s.Closed()
	require.Equal(t, 1006, code)
	s, _ = w.Dial(t, alpha, w.panel.URL)
	code, reason := s.Closed()
	require.Equal(t, 4409, code)
	require.Equal(t, "server is suspended", reason)
	w.panel.SetServer(t, w.server(""))
	w.Want(t, 204, "POST", "/api/servers/"+alpha+"/sync", nil)
	s = w.open(t, "*")
	s.Want("status", "offline")
	w.Want(t, 204, "DELETE", "/api/servers/"+alpha, nil)
	s.Want("deleted", "null")
	s.Closed()
}

// TestSocketOfInstallation: what customers and administrators see of it.
func TestSocketOfInstallation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner, admin := w.open(t, "*"), w.open(t, "*", "admin.websocket.install")
	w.installed(t)
	for _, s := range []*paneltest.Socket{owner, admin} {
		s.Want("status", "offline")
		s.Want("install started", "")
	}
	owner.Want("install completed", "")
	admin.Until("install completed", "")
}

// TestSocketBesideAnInstallation: a page that is opened while an installation begins has no line of it.
func TestSocketBesideAnInstallation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	next := w.between(t)
	g := &gate{prefix: "GET /ws/" + alpha, held: make(chan struct{}), open: make(chan struct{})}
	next.Store(g)
	owner := w.open(t, "*")
	<-g.held
	w.Want(t, 202, "POST", atAlpha+"/reinstall", nil)
	w.panel.Await(t, "POST /servers/"+alpha+"/install", 2)
	w.unmarked(t)
	close(g.open)
	w.Want(t, 202, "POST", atAlpha+"/power", map[string]any{"action": "start"})
	for _, e := range owner.Until("status", "running") {
		require.NotEqual(t, "installing", e.Argument())
	}
}

// TestSocketRights: a socket does what its token names, and nothing else.
func TestSocketRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.panel.SetServer(t, strings.ReplaceAll(w.server(""), alpha, beta))
	w.stop()
	w.run(t)
	for origin, want := range map[string]int{"": 403, "http://evil.test": 403, w.panel.URL: 101} {
		_, status := w.Dial(t, alpha, origin)
		require.Equal(t, want, status, origin)
	}
	_, status := w.Dial(t, "99999999-9999-4999-8999-999999999999", w.panel.URL)
	require.Equal(t, 404, status)

	s := w.open(t, "websocket.connect")
	s.Want("status", "offline")
	s.Send("set state", "start") // silent
	s.Send("set state", "kill")
	s.Send("send command", "x")
	s.Send("set state", "dance")
	s.Want("daemon error", "")
	kept, err := os.ReadFile(filepath.Join(w.root, "berth-wings", "activity.jsonl"))
	require.NoError(t, err)
	require.NotContains(t, string(kept), "event", "nothing was done")
	require.Empty(t, w.panel.Calls("POST /activity"))

	refused := func(event, sentence, token string) {
		t.Helper()
		s, _ := w.Dial(t, alpha, w.panel.URL)
		s.Send("auth", token)
		s.Want(event, sentence)
		s.Send("set state", "start")
		s.Want("jwt error", "jwt: no jwt present")
	}
	all := []string{"*"}
	now := time.Now().Unix()
	refused("jwt error", "jwt: missing connect permission", token(t, []string{"control.start"}, nil))
	refused("jwt error", "jwt: missing connect permission", token(t, all, map[string]any{"scope": "file-download"}))
	refused("jwt error", "jwt: missing connect permission", token(t, all, map[string]any{"scope": nil})) // the panel has sent scopes before
	refused("jwt error", "jwt: exp claim is invalid", token(t, all, map[string]any{"exp": now}))
	refused("jwt error", "jwt: exp claim is invalid", token(t, all, map[string]any{"exp": nil}))
	refused("jwt error", "jwt: created too far in past (denylist)", token(t, all, map[string]any{"iat": now - 3600}))
	refused("jwt error", "jwt: created too far in past (denylist)", token(t, all, map[string]any{"user_uuid": nil}))
	refused("daemon error", "an unexpected error", token(t, all, nil)+"x")

	s, _ = w.Dial(t, alpha, w.panel.URL)
	s.Send("auth", token(t, all, map[string]any{"server_uuid": beta}))
	s.Want("auth success", "")
	for range 2 {
		s.Send("send stats", nil)
		s.Want("jwt error", "jwt: server uuid mismatch")
	}

	s = w.open(t, all...)
	s.Want("status", "offline")
	for range 9 { // of more, the general limit would be first
		s.Send("send stats", nil)
	}
	s.Want("throttled", "send stats")
}

// TestRevocation: a user who loses his rights has no socket any more, and his older tokens open none.
func TestRevocation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	friend := func(at int64) string {
		return token(t, []string{"*"}, map[string]any{"user_uuid": "0f0f0f0f-0000-4000-8000-0f0f0f0f0f0f", "jti": "of friend", "iat": time.Now().Unix() + at})
	}
	open := func(token string) *paneltest.Socket {
		s, _ := w.Dial(t, alpha, w.panel.URL)
		s.Send("auth", token)
		return s
	}
	const old = "jwt: created too far in past (denylist)"
	owner := w.open(t, "*")
	owner.Want("status", "offline")
	s := open(friend(0))
	s.Want("auth success", "")
	s.Want("status", "offline")
	w.Want(t, 204, "POST", "/api/servers/"+alpha+"/ws/deny", map[string]any{"jtis": []string{"of friend"}})
	s.Send("send stats", nil)
	s.Want("jwt error", old)
	s.Send("auth", friend(1))
	s.Want("auth success", "")

	const user = "0f0f0f0f-0000-4000-8000-0f0f0f0f0f0f"
	earlier, later := friend(-1), friend(1)
	for n, body := range []any{map[string]any{"user": user, "servers": []string{alpha}}, map[string]any{"json": map[string]any{"user": user, "servers": []string{}}}} {
		s = open(friend(int64(2 * n)))
		if n == 0 {
			s = open(later)
		}
		s.Want("auth success", "")
		w.Want(t, 204, "POST", "/api/deauthorize-user", body)
		code, _ := s.Closed()
		require.Equal(t, 1006, code)
	}
	open(earlier).Want("jwt error", old)
	w.Want(t, 422, "POST", "/api/deauthorize-user", map[string]any{})
	owner.Send("send stats", nil)
	owner.Send("set state", "dance")
	owner.Want("daemon error", "") // it is still open
}
