package node

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"berth/cmd/berth-wings/config"
	"berth/cmd/berth-wings/panel"
)

func text(s string) *string { return &s }

// TestKindsOfTokens: a token is for what its scope names, or for what its claims show if no token of the
// panel had a scope yet.
func TestKindsOfTokens(t *testing.T) {
	tokens := newTokens(time.Now())
	all := []*claims{{Permissions: []string{}}, {File: "a"}, {}, {Backup: "b"}, {RegisteredClaims: jwt.RegisteredClaims{Subject: "s"}}}
	kinds := []scope{scopeSocket, scopeDownload, scopeUpload}
	for i, c := range all {
		for n, kind := range kinds {
			require.Equal(t, i == n, tokens.fits(c, kind), "%d as %s", i, kind)
		}
	}
	require.True(t, tokens.fits(&claims{Scope: text("x file-upload")}, scopeUpload))
	require.False(t, tokens.fits(&claims{Scope: text(""), Permissions: []string{}}, scopeSocket))
	for n, kind := range kinds {
		require.False(t, tokens.fits(all[n], kind), "scopes are demanded now")
	}
}

func TestPermissions(t *testing.T) {
	c := &claims{Permissions: []string{"*", "admin.websocket.errors"}}
	for permission, want := range map[string]bool{"control.start": true, "admin.websocket.errors": true, "admin.websocket.install": false} {
		require.Equal(t, want, c.has(permission), permission)
	}
	require.False(t, (&claims{}).has("control.start"))
}

// TestUsedTokens: a one-time key is used once, and forgotten when no token can have it.
func TestUsedTokens(t *testing.T) {
	now := time.Now()
	tokens := newTokens(now)
	require.False(t, tokens.spend(&claims{}, now))
	for i := range maxTokens {
		require.True(t, tokens.spend(&claims{Once: time.Duration(i).String()}, now))
	}
	require.False(t, tokens.spend(&claims{Once: "5ns"}, now))
	require.False(t, tokens.spend(&claims{Once: "one more"}, now))
	later := now.Add(onceLife + time.Second)
	require.True(t, tokens.spend(&claims{Once: "one more"}, later))
	require.Len(t, tokens.used, 1)
}

// TestRenewal: a page learns before its token ends, and when it has.
func TestRenewal(t *testing.T) {
	now := time.Now()
	for left, want := range map[time.Duration][]string{renewBefore + time.Second: nil, renewBefore: {"token expiring"}, time.Second: {"token expiring"},
		0: {"token expired", "jwt error"}, -time.Hour: {"token expired", "jwt error"}} {
		s := &socket{n: &Node{}, token: &claims{RegisteredClaims: jwt.RegisteredClaims{ExpiresAt: jwt.NewNumericDate(now.Add(left))}}}
		s.token.ExpiresAt.Time = now.Add(left)
		s.renew(now)
		var names []string
		for _, e := range s.queue {
			names = append(names, e.Name)
		}
		require.Equal(t, want, names, left)
	}
}

// TestActivityStays: what the panel has not taken survives the end of the bridge, in order, and is
// bounded.
func TestActivityStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "activity.jsonl")
	entry := func(command string) panel.Activity {
		return panel.Activity{Event: "server:console.command", Metadata: map[string]any{"command": command}}
	}
	a, err := openActivity(path)
	require.NoError(t, err)
	for _, command := range []string{"one", "two\nlines", "three"} {
		require.NoError(t, a.add(entry(command), nil))
	}
	require.NoError(t, a.drop(1))
	again, err := openActivity(path)
	require.NoError(t, err)
	list := again.first(100)
	require.Len(t, list, 2)
	require.Equal(t, "two\nlines", list[0].Metadata["command"])
	require.Len(t, again.first(1), 1)
	many := entry(strings.Repeat("x", maxCommand))
	for range maxKept / maxCommand {
		again.list = append(again.list, many)
	}
	again.size = maxKept
	require.NoError(t, again.add(entry("last"), nil))
	require.Less(t, again.size, maxKept)
	last, err := openActivity(path)
	require.NoError(t, err)
	require.Len(t, last.list, len(again.list))
	require.Equal(t, "last", last.list[len(last.list)-1].Metadata["command"])
}

// TestActivityOfOthers: a customer with very many entries removes none of another server.
func TestActivityOfOthers(t *testing.T) {
	a, err := openActivity(filepath.Join(t.TempDir(), "a", "activity.jsonl"))
	require.NoError(t, err)
	add := func(server string, files ...any) {
		require.NoError(t, a.add(panel.Activity{Server: server, Metadata: map[string]any{"files": files}}, nil))
	}
	add("sent", "x")
	require.Len(t, a.first(1), 1)
	add("other", "x")
	for range maxKept / maxCommand {
		add("hostile", strings.Repeat("x", maxCommand))
	}
	add("hostile", "last")
	require.NoError(t, a.drop(1))
	var servers []string
	for _, e := range a.list {
		servers = append(servers, e.Server)
	}
	require.Equal(t, []string{"other", "hostile"}, slices.Compact(servers))
	require.LessOrEqual(t, a.size, maxKept)
}

// TestLongEntries: entries with long names are read again, with those of other servers behind them, and fit into requests.
func TestLongEntries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "activity.jsonl")
	a, err := openActivity(path)
	require.NoError(t, err)
	user := "someone"
	add := func(count int, name string) {
		for range count {
			require.NoError(t, a.add(panel.Activity{User: &user, Server: "hostile", Metadata: map[string]any{"files": []any{name}}}, nil))
		}
	}
	add(2*maxFiles, strings.Repeat("x", 700))
	add(100, strings.Repeat("<", 4000)) // six bytes each in the file
	require.NoError(t, a.add(panel.Activity{Server: "other"}, nil))
	require.NoError(t, a.drop(0))
	again, err := openActivity(path)
	require.NoError(t, err)
	require.Equal(t, "other", again.list[len(again.list)-1].Server)
	for len(again.list) > 0 {
		text, err := json.Marshal(again.first(100))
		require.NoError(t, err)
		require.LessOrEqual(t, len(text), maxSent+100)
		require.NoError(t, again.drop(len(again.first(100))))
	}
}

// TestAddressesOfActivity: the panel refuses a request with an address that has a zone, with the entries of others in it.
func TestAddressesOfActivity(t *testing.T) {
	file := &config.File{}
	file.Config.API.TrustedProxies = []string{"fe80::/10"}
	n := new(Node)
	n.file.Store(file)
	for _, c := range []struct{ remote, forwarded, want string }{
		{"192.0.2.1:80", "192.0.2.9", "192.0.2.1"},
		{"[::ffff:192.0.2.1]:80", "", "192.0.2.1"},
		{"[fe80::1%eth0]:80", "", "fe80::1"},
		{"[fe80::1%eth0]:80", "192.0.2.7, fe80::2%eth0", "192.0.2.7"},
		{"[fe80::1%eth0]:80", "fe80::3%eth0", "fe80::3"},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.RemoteAddr = c.remote
		r.Header.Set("X-Forwarded-For", c.forwarded)
		require.Equal(t, c.want, n.address(r).String(), c)
	}
}

// TestRefusedActivity: a panel that refuses the node for a while, such as for its secret, takes the entries later. Those that
// it refuses themselves keep no others from it.
func TestRefusedActivity(t *testing.T) {
	var statuses []int
	var bodies []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		w.WriteHeader(statuses[0])
		statuses = statuses[1:]
	}))
	defer s.Close()
	file := &config.File{}
	file.Config.System.ActivitySendCount = 1
	a, err := openActivity(filepath.Join(t.TempDir(), "activity.jsonl"))
	require.NoError(t, err)
	n := &Node{activity: a, o: Options{Log: slog.New(slog.DiscardHandler), Panel: panel.New(panel.Options{Remote: s.URL})}}
	n.file.Store(file)
	require.NoError(t, a.add(panel.Activity{Event: "server:one"}, nil))
	require.NoError(t, a.add(panel.Activity{Event: "server:two"}, nil))
	for _, status := range []int{401, 403, 404, 429} {
		statuses = []int{status}
		n.flushActivity(t.Context())
		require.Len(t, a.list, 2, status)
	}
	statuses, bodies = []int{422, 200}, nil
	n.flushActivity(t.Context())
	require.Empty(t, a.list)
	require.Contains(t, bodies[1], "server:two")
}
