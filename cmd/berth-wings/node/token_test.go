package node

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

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
	for range maxLines {
		again.list = append(again.list, entry("many"))
	}
	again.lines = len(again.list)
	require.NoError(t, again.add(entry("last"), nil))
	require.LessOrEqual(t, len(again.list), maxLines)
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
	a.list = append(a.list, panel.Activity{Server: "hostile", Metadata: map[string]any{"files": make([]any, maxLines)}})
	a.lines += maxLines
	add("hostile", "last")
	require.NoError(t, a.drop(1))
	var servers []string
	for _, e := range a.list {
		servers = append(servers, e.Server)
	}
	require.Equal(t, []string{"other", "hostile"}, servers)
	require.Equal(t, 2, a.lines)
}

// TestLongHistory: the lines of a console that are kept are bounded by their bytes too.
func TestLongHistory(t *testing.T) {
	f := &feed{}
	for range 150 {
		f.keep(strings.Repeat("x", maxLine), 150)
	}
	require.Len(t, f.history, maxHistory/maxLine)
	require.Equal(t, maxHistory, f.kept)
	f.keep("last", 3)
	require.Len(t, f.history, 3)
	require.Equal(t, 2*maxLine+4, f.kept)
}

// TestLongLines: a line of any length comes in pieces of a bounded size, and no byte is lost.
func TestLongLines(t *testing.T) {
	f := &feed{}
	long := make([]byte, 3*maxLine+5)
	for i := range long {
		long[i] = 'x'
	}
	f.print("a\r\nb", 10)
	require.Equal(t, []string{"a"}, f.history)
	f.print("c\n"+string(long), 10)
	f.print("y\n\xff\n", 10)
	total := 0
	for _, line := range f.history[2:] {
		require.LessOrEqual(t, len(line), maxLine)
		total += len(line)
	}
	require.Equal(t, "bc", f.history[1])
	require.Equal(t, len(long)+1+len("\uFFFD"), total)
}
