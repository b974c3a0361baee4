package server

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/limit"
	v1 "berth/api/v1"
	"berth/store"
)

// audited returns the actions, objects and statuses in the audit log after seq since.
func audited(h *harness, since uint64) (list []string) {
	h.t.Helper()
	entries, err := store.ReadAudit(h.store.Read(), since, 1000, v1.AuditFilter{})
	for _, e := range entries {
		since++
		require.Equal(h.t, since, e.Seq, "no gap")
		list = append(list, strings.Join([]string{e.Action, e.Object, http.StatusText(e.Status)}, "|"))
	}
	require.NoError(h.t, err)
	return list
}

func TestAuditOfEachRoute(t *testing.T) {
	for _, r := range routes(handlers{}, decoder{}) {
		if r.method == get || r.path == "/eggs" { // which only converts
			require.Empty(t, r.action, r.path)
			continue
		}
		require.Regexp(t, `^[a-z]+\.[a-z]+$`, r.action, "%s %s", r.method, r.path)
	}
}

func TestAuditOfRequests(t *testing.T) {
	h := newHarness(t)
	id := h.must("POST", "/volumes", nil).json["volume_id"].(string)
	h.ports(4000)
	h.container("mc", id, 4000)
	h.must("PUT", "/containers/mc?dry_run=true", object{"image": "busybox:1", "volume_id": id})
	h.refuse(404, "Volume not found", "PUT", "/containers/mc?dry_run=true", object{"image": "busybox:1", "volume_id": "01234567"})
	h.refuse(400, "dry_run: unknown parameter; known: none", "POST", "/containers/mc/start?dry_run=true", nil)
	h.must("POST", "/containers/mc/start", nil)
	token := h.must("POST", "/auth/tokens", object{"scopes": []string{"read"}}).json
	secret := token["token"].(string)
	h.must("GET", "/containers", nil)
	for _, method := range []string{"HEAD", "OPTIONS"} {
		h.do(request{method: method, path: "/containers"})
	}
	require.Equal(t, 401, h.do(request{method: "POST", path: "/volumes", token: "-"}).status)
	require.Equal(t, []string{"volume.create|" + id + "|Created", "port.create|127.0.0.1:4000/tcp|OK", "container.create|mc|OK",
		"container.start|mc|Bad Request", "container.start|mc|OK", "token.create|" + token["id"].(string) + "|OK"}, audited(h, 0))

	seen := uint64(len(audited(h, 0)))
	require.Equal(t, 403, h.do(request{method: "POST", path: "/volumes", accept: "text/html"}).status)
	require.Equal(t, 403, h.do(request{method: "POST", path: "/volumes", token: secret}).status)
	require.Equal(t, 403, h.do(request{method: "DELETE", path: "/containers/mc", token: secret, header: http.Header{"X-Berth-Actor": {"x"}}}).status)
	require.Equal(t, 404, h.call("POST", "/nowhere/"+secret, nil).status)
	require.Equal(t, 405, h.call("PATCH", "/volumes", nil).status)
	require.Equal(t, 404, h.call("POST", "/containers/none/stop", nil).status)
	require.Equal(t, 404, h.call("DELETE", "/auth/tokens/"+secret, nil).status)
	require.Equal(t, 413, h.do(request{method: "POST", path: "/volumes", body: strings.Repeat(" ", 2<<20)}).status)
	require.Equal(t, 415, h.do(request{method: "POST", path: "/volumes", body: "x", header: http.Header{"Content-Type": {"text/plain"}}}).status)
	require.Equal(t, 400, h.call("POST", "/containers", object{"internal_id": "x"}).status)
	require.Equal(t, 409, h.call("DELETE", "/volumes/"+id[:8], nil).status)
	require.Equal(t, 404, h.call("DELETE", "/network/ports/::1/80?protocol=udp", nil).status)
	require.Equal(t, []string{"volume.create||Forbidden", "volume.create||Forbidden", "container.delete|mc|Forbidden",
		"request.post|/nowhere/***|Not Found", "request.patch|/volumes|Method Not Allowed", "container.stop|none|Not Found", "token.delete|***|Not Found",
		"volume.create||Request Entity Too Large", "volume.create||Unsupported Media Type", "container.create|x|Bad Request",
		"volume.delete|" + id + "|Conflict", "port.delete|[::1]:80/udp|Not Found"}, audited(h, seen))

	c := h.open("/ws")
	seen = uint64(len(audited(h, 0)))
	for _, m := range []object{{"event": "power", "data": "stop", "container": "mc"}, {"event": "send_command", "data": "hi", "container": "mc"},
		{"event": "power", "data": "up", "container": "mc"}, {"event": "power", "data": "stop"}, {"event": "dance"}, {"event": "request_stats", "container": "mc"}} {
		require.NoError(t, c.WriteJSON(m))
	}
	for c.next()["event"] != "stats" {
	}
	require.Equal(t, []string{"container.stop|mc|OK", "container.command|mc|OK", "container.power|mc|Bad Request", "container.stop||Bad Request"}, audited(h, seen))
}

func TestListAudit(t *testing.T) {
	h := newHarness(t)
	id := h.volume()
	h.container("mc", id)
	h.do(request{method: "POST", path: "/containers/mc/start", header: http.Header{"X-Berth-Actor": {"alice"}, "X-Request-Id": {"my-request"}}})
	list := func(query string) (seqs []float64) {
		t.Helper()
		for _, e := range h.must("GET", "/audit"+query, nil).json["entries"].([]any) {
			seqs = append(seqs, e.(object)["seq"].(float64))
		}
		return seqs
	}
	require.Equal(t, []float64{1, 2, 3}, list(""))
	require.Equal(t, []float64{2}, list("?since=1&limit=1"))
	require.Empty(t, list("?since=3"))
	require.Empty(t, list("?since=99"))
	require.Equal(t, []float64{2, 3}, list("?last=2"))
	require.Equal(t, []float64{2}, list("?last=1&volume="+id))
	require.Empty(t, list("?last=0"))
	h.refuse(400, "last: must be without since, epoch and limit", "GET", "/audit?last=1&since=1", nil)
	h.refuse(400, "last: must be a number between 0 and 10000", "GET", "/audit?last=10001", nil)
	require.Equal(t, []float64{2, 3}, list("?container=mc"))
	require.Equal(t, []float64{1, 2}, list("?volume="+id[:8]))
	require.Equal(t, []float64{3}, list("?actor=alice&container=mc"))
	require.Empty(t, list("?actor=alice&volume="+id))
	require.Contains(t, h.must("GET", "/audit?since=2", nil).raw, `"action":"container.start","object":"mc","request_id":"my-request","status":200}]}`)
	h.refuse(400, "since: must be the seq of an event", "GET", "/audit?since=-1", nil)
	h.refuse(400, "limit: must be a number between 0 and 10000", "GET", "/audit?limit=x", nil)
	for _, body := range []object{{"scopes": []string{"read", "power"}}, {"containers": []string{"mc"}}} {
		require.Equal(t, 403, h.do(request{method: "GET", path: "/audit", token: h.mint(body)}).status)
	}
}

// TestAuditOfVolume finds the requests that name a volume by its first characters, those included
// that were refused.
func TestAuditOfVolume(t *testing.T) {
	h := newHarness(t)
	id := h.volume()
	short := id[:8]
	seen := len(audited(h, 0))
	h.must("POST", "/containers", object{"internal_id": "mc", "image": "busybox:1", "volume_id": short})
	require.Equal(t, 201, h.call("PUT", "/containers/applied", object{"image": "busybox:1", "volume_id": short}).status)
	require.Equal(t, 400, h.call("POST", "/volumes/"+strings.ToUpper(short)+"/copy", object{"source": 1}).status)
	require.Equal(t, 400, h.call("POST", "/volumes/01234567/copy", object{"source": 1}).status)
	for _, query := range []string{short, id} {
		list := h.must("GET", "/audit?since="+strconv.Itoa(seen)+"&volume="+query, nil).json["entries"].([]any)
		require.Len(t, list, 3, query)
		require.Equal(t, id, list[2].(object)["object"])
	}
	require.Len(t, h.must("GET", "/audit?volume=01234567", nil).json["entries"], 1)
}

// TestAuditBeforeAnswer: a request whose entry cannot be stored is not acknowledged.
func TestAuditBeforeAnswer(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	h.store.Close()
	require.Equal(t, 500, h.do(request{method: "POST", path: "/volumes", accept: "text/html"}).status)
	require.Contains(t, h.must("GET", "/metrics", nil).raw, `berth_audit_entries_total{result="unrecorded"} 1`)
}

// TestPace: a refused request counts several times, and none of the configured token counts.
func TestPace(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	pace := h.server.handlers.files.sessions.access.auditor.pace
	token := h.mint(object{"containers": []string{"mc"}, "scopes": []string{"read"}})
	began := time.Now()
	for range 5 {
		require.Equal(t, 403, h.do(request{method: "POST", path: "/containers/mc/start", token: token}).status)
		require.Equal(t, 200, h.do(request{method: "POST", path: "/containers/mc/stop"}).status)
	}
	changes := limit.Changes()
	left := pace.Left(h.tenantOf("mc"), changes.Burst) + time.Since(began) // what the tenant has won meanwhile
	require.Greater(t, left, 15*changes.Every)
	require.Zero(t, pace.Left("", changes.Burst))
}

// TestRefusalsOfOneKindAreCounted: a tenant's refused requests do not fill the audit log, and what it changes
// has its entry all the same.
func TestRefusalsOfOneKindAreCounted(t *testing.T) {
	h := newHarness(t)
	h.container("mc", h.volume())
	token := h.mint(object{"scopes": []string{"console"}, "containers": []string{"mc"}})
	send := func(path, body string) answer {
		return h.do(request{method: "POST", path: path, body: body, token: token})
	}
	for range limit.RefusedEntries().Burst + 20 {
		require.Equal(t, 403, send("/containers/mc/kill", "").status)
	}
	require.Equal(t, 200, send("/containers/mc/command", `{"command":"x"}`).status)
	listed := map[string]int{}
	for _, e := range h.must("GET", "/audit?container=mc&limit=1000", nil).json["entries"].([]any) {
		listed[e.(map[string]any)["action"].(string)]++
	}
	require.Equal(t, map[string]int{"container.create": 1, "container.kill": limit.RefusedEntries().Burst, "container.command": 1}, listed)
}
