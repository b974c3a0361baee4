package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"

	"berth/api/auth"
	"berth/api/limit"
	v1 "berth/api/v1"
	"berth/hack/test/openapitest"
	"berth/store"
)

// client is the client's side of a socket.
type client struct {
	t *testing.T
	*websocket.Conn
	epoch string
	line  string // of the last message that had one
}

func (h *harness) open(path string) *client {
	h.t.Helper()
	c, resp, err := h.dialSocket(path, http.Header{"Authorization": {"Bearer " + adminToken}})
	require.NoError(h.t, err)
	require.Equal(h.t, 101, resp.StatusCode)
	return c
}

func (h *harness) dialSocket(path string, header http.Header) (*client, *http.Response, error) {
	c, resp, err := websocket.DefaultDialer.Dial(strings.Replace(h.base, "http", "ws", 1)+path, header)
	if err != nil {
		return nil, resp, err
	}
	h.t.Cleanup(func() { _ = c.Close() })
	require.NoError(h.t, c.SetReadDeadline(time.Now().Add(5*time.Minute)))
	return &client{h.t, c, h.store.Incarnations.Epoch(), ""}, resp, nil
}

// next returns the next message, without its time, which it checks.
func (c *client) next() object {
	c.t.Helper()
	_, raw, err := c.ReadMessage()
	require.NoError(c.t, err)
	openapitest.CheckValue(c.t, "SocketMessage", raw)
	openapitest.CheckValue(c.t, "SocketMessage", raw)
	var m object
	require.NoError(c.t, json.Unmarshal(raw, &m), string(raw))
	at, err := time.Parse(time.RFC3339Nano, m["time"].(string))
	require.NoError(c.t, err)
	require.WithinDuration(c.t, time.Now(), at, time.Hour)
	delete(m, "time")
	if m["seq"] != nil || m["event"] == "gap" {
		require.Equal(c.t, c.epoch, m["epoch"])
	}
	delete(m, "epoch")
	if line, has := m["line"].(string); has {
		c.line = line
	}
	delete(m, "line")
	delete(m, "times")
	return m
}

func (c *client) send(event, data string) {
	c.t.Helper()
	require.NoError(c.t, c.WriteJSON(object{"event": event, "data": data}))
}

// closed discards messages until the server closes the socket, and returns the code
// and reason.
func (c *client) closed() (int, string) {
	c.t.Helper()
	for {
		_, _, err := c.ReadMessage()
		if err == nil {
			continue
		}
		end, is := err.(*websocket.CloseError)
		require.True(c.t, is, "%v", err)
		return end.Code, end.Text
	}
}

func state(phase v1.Phase, seq int) object {
	m := object{"event": "event", "data": string(phase)}
	if seq > 0 {
		m["seq"] = float64(seq)
	}
	return m
}

func (h *harness) ready(id string) {
	h.container(id, h.volume())
	h.phase(id, v1.Installing)
	h.phase(id, v1.Ready)
}

func TestContainerSocket(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	h.print("mc", v1.ServerConsole, "one", "two")
	c := h.open("/ws/mc?tail=1")
	require.Equal(t, state(v1.Ready, 2), c.next())
	require.Equal(t, object{"event": "logs", "data": "two\n"}, c.next())
	h.phase("mc", v1.Starting)
	require.Equal(t, state(v1.Starting, 3), c.next())
	h.print("mc", v1.ServerConsole, "three")
	require.Equal(t, object{"event": "console", "data": "three\n"}, c.next())
	h.hub.Stats("mc", v1.Stats{CPUUsage: 7})
	m := c.next()
	require.Equal(t, "stats", m["event"])
	require.Equal(t, 7.0, m["cpu_usage"])
	for _, field := range []string{"memory_usage", "memory_limit", "network_rx", "network_tx", "block_read", "block_write"} {
		require.Contains(t, m, field)
	}
}

func TestSocketBeforeFirstStatus(t *testing.T) {
	h := newHarness(t)
	h.container("mc", h.volume())
	c := h.open("/ws/mc/?tail=0")
	require.Equal(t, state(v1.Installing, 0), c.next())
	h.phase("mc", v1.Installing)
	require.Equal(t, state(v1.Installing, 1), c.next(), "no logs with tail=0")
}

func TestSocketReplay(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	h.ready("other")
	h.phase("mc", v1.Starting)
	c := h.open("/ws/mc?since=1&tail=0")
	require.Equal(t, state(v1.Ready, 2), c.next())
	require.Equal(t, state(v1.Starting, 5), c.next())
	require.Equal(t, state(v1.Starting, 5), c.next(), "then the current state")
	h.phase("mc", v1.Running)
	require.Equal(t, state(v1.Running, 6), c.next())
	_, err := h.store.TrimEvents(h.storeNow(), 2)
	require.NoError(t, err)
	c = h.open("/ws/mc?since=1&tail=0")
	require.Equal(t, object{"event": "gap", "data": "5"}, c.next())
	require.Equal(t, state(v1.Starting, 5), c.next())
	require.Equal(t, state(v1.Running, 6), c.next())
	require.Equal(t, state(v1.Running, 6), c.next())
	c = h.open("/ws/mc?since=99&tail=0")
	require.Equal(t, "gap", c.next()["event"], "a number of another store")
	c = h.open("/ws/mc?since=6&tail=0")
	require.Equal(t, state(v1.Running, 6), c.next(), "nothing was missed")
	_, err = h.store.TrimEvents(time.Now().Add(time.Hour), 0)
	require.NoError(t, err)
	c = h.open("/ws/mc?since=6&tail=0")
	require.Equal(t, state(v1.Running, 6), c.next(), "nor when none is kept")
	c = h.open("/ws/mc?since=5&tail=0")
	require.Equal(t, object{"event": "gap", "data": "7"}, c.next())
	require.Equal(t, state(v1.Running, 6), c.next())
	require.Equal(t, 6.0, h.must("GET", "/events", nil).json["newest"])
}

// TestReplayIsComplete connects again and again while transitions are stored: each
// is sent once, in order, except for the one that is the current state.
func TestReplayIsComplete(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	const burst = 200
	for round := range 10 {
		last := float64(2 + (round+1)*burst)
		var writing sync.WaitGroup
		writing.Go(func() {
			for i := range burst {
				h.phase("mc", v1.Phases()[i%2+2])
			}
		})
		c := h.open("/ws/mc?since=0&tail=0")
		repeated := 0
		for want := 1.0; want <= last; {
			switch seq := c.next()["seq"].(float64); seq {
			case want:
				want++
			case want - 1:
				repeated++
			default:
				t.Fatalf("%v after %v", seq, want-1)
			}
		}
		writing.Wait()
		require.LessOrEqual(t, repeated, 1)
		require.NoError(t, c.Close())
	}
}

func TestNodeSocket(t *testing.T) {
	h := newHarness(t)
	h.ready("a")
	h.ready("b")
	h.print("a", v1.ServerConsole, "old")
	c := h.open("/ws?since=3")
	with := func(m object, id string) object { m["container"] = id; return m }
	require.Equal(t, with(state(v1.Ready, 4), "b"), c.next())
	require.Equal(t, with(state(v1.Ready, 2), "a"), c.next())
	require.Equal(t, with(state(v1.Ready, 4), "b"), c.next())
	h.print("b", v1.ServerConsole, "new")
	require.Equal(t, object{"event": "console", "data": "new\n", "container": "b"}, c.next())
	c.send("power", "start")
	require.Equal(t, object{"event": "daemon_message", "data": "Message must name a container"}, c.next())
	require.NoError(t, c.WriteJSON(object{"event": "power", "data": "start", "container": "a"}))
	require.NoError(t, c.WriteJSON(object{"event": "request_stats", "container": "a"}))
	require.Equal(t, "a", c.next()["container"])
	require.Equal(t, "running", h.must("GET", "/containers/a", nil).json["power"])
}

func TestClientMessages(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	h.print("mc", v1.ServerConsole, "one", "two")
	c := h.open("/ws/mc?tail=0")
	c.next()
	said := func(text string) object { return object{"event": "daemon_message", "data": text} }
	c.send("request_logs", "1")
	require.Equal(t, object{"event": "logs", "data": "two\n"}, c.next())
	c.send("request_stats", "")
	require.Equal(t, 12.5, c.next()["cpu_usage"])
	c.send("send_command", "say hi")
	for data, power := range map[string]string{"start": "running", "stop": "stopped", "restart": "running", "kill": "stopped"} {
		c.send("power", data)
		c.send("request_stats", "")
		c.next()
		require.Equal(t, power, h.must("GET", "/containers/mc", nil).json["power"], data)
	}
	require.Equal(t, []string{"mc say hi\n"}, h.console.all())
	require.NoError(t, c.WriteMessage(websocket.TextMessage, []byte("{not json")))
	require.Equal(t, said("Message must be a JSON object with event and data"), c.next())
	c.send("power", "explode")
	require.Equal(t, said("data: must be start, stop, kill or restart"), c.next())
	c.send("request_logs", "-1")
	require.Equal(t, said("data: must be a number between 0 and 10000"), c.next())
	for _, m := range []object{{"event": "send_command"}, {"event": "send_command", "data": nil}, {"event": "power"}} {
		require.NoError(t, c.WriteJSON(m))
		require.Equal(t, said("data: is required"), c.next(), m)
	}
	for _, raw := range []string{`{"event":"send_command","data":5}`, `{"event":"request_logs","data":[1]}`, `{"event":5}`, `[]`, `null`, `"x"`,
		`{"event":"send_command","data":"x"} {}`} {
		require.NoError(t, c.WriteMessage(websocket.TextMessage, []byte(raw)))
		require.Equal(t, "daemon_message", c.next()["event"], raw)
	}
	c.send("send_command", "")
	c.send("request_stats", "")
	c.next()
	require.Equal(t, []string{"mc say hi\n", "mc \n"}, h.console.all(), "an empty line is one that was sent")
	c.send("dance", "")
	require.Equal(t, said("Unknown event: must be send_command, power, request_logs, request_stats or resize"), c.next())
}

func TestSocketScopes(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	token := h.mint(object{"scopes": []string{"read"}})
	c, _, err := h.dialSocket("/ws/mc?tail=0&token="+token, nil)
	require.NoError(t, err)
	c.next()
	for _, event := range []string{"send_command", "power", "resize"} {
		c.send(event, "start")
		require.Equal(t, object{"event": "daemon_message", "data": "Token scope does not allow this operation"}, c.next())
	}
	require.Empty(t, h.console.all())
}

func TestSocketRefusals(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	admin := http.Header{"Authorization": {"Bearer " + adminToken}}
	for path, want := range map[string]int{"/ws/none": 404, "/ws/mc?tail=x": 400, "/ws/mc?since=x": 400, "/ws/mc/x": 403} {
		_, resp, err := h.dialSocket(path, admin)
		require.Error(t, err)
		require.Equal(t, want, resp.StatusCode, path)
	}
	_, resp, _ := h.dialSocket("/ws/mc", nil)
	require.Equal(t, 401, resp.StatusCode)
	a := h.do(request{method: "GET", path: "/ws/mc", accept: "-"})
	require.Equal(t, 426, a.status)
	require.Equal(t, "upgrade_required", a.header.Get("X-Error-Code"))
}

func TestSingleUseOpensOneSocket(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	token := h.mint(object{"remove_on_use": true})
	c, _, err := h.dialSocket("/ws/mc?tail=0&token="+token, nil)
	require.NoError(t, err)
	c.next()
	_, resp, err := h.dialSocket("/ws/mc?token="+token, nil)
	require.Error(t, err)
	require.Equal(t, 401, resp.StatusCode)
	c.send("request_stats", "")
	require.Equal(t, "stats", c.next()["event"], "its socket lives on")
}

func TestSocketCloseReasons(t *testing.T) {
	for name, c := range map[string]struct {
		token  object
		do     func(h *harness)
		code   int
		reason string
	}{
		"expiry":                  {object{"ttl": "4s"}, func(*harness) {}, 1008, "token has expired"},
		"expiry of a spent token": {object{"ttl": "4s", "remove_on_use": true}, func(*harness) {}, 1008, "token has expired"},
		"revocation": {object{}, func(h *harness) {
			list := h.must("GET", "/auth/tokens", nil).json["tokens"].([]any)
			h.must("DELETE", "/auth/tokens/"+list[0].(map[string]any)["id"].(string), nil)
		}, 1008, "token is revoked"},
		"deletion": {object{}, func(h *harness) {
			h.must("DELETE", "/containers/mc", nil)
			require.NoError(h.t, h.store.Update(func(tx *store.Tx) error { return store.Containers.Purge(tx, "mc") }))
		}, 1000, "container is deleted"},
		"deletion, reported by the hub": {object{}, func(h *harness) { require.NoError(h.t, h.hub.Remove("mc")) }, 1000, "container is deleted"},
		"shutdown": {object{}, func(h *harness) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			require.NoError(h.t, h.server.Shutdown(ctx))
		}, 1001, "shutting down"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.ready("mc")
			socket, _, err := h.dialSocket("/ws/mc?tail=0&token="+h.mint(c.token), nil)
			require.NoError(t, err)
			socket.next()
			began := time.Now()
			c.do(h)
			code, reason := socket.closed()
			require.Equal(t, fmt.Sprint(c.code, c.reason), fmt.Sprint(code, reason))
			require.Less(t, time.Since(began), time.Minute)
		})
	}
}

func TestLargeMessageClosesSocket(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	c := h.open("/ws/mc?tail=0")
	c.next()
	c.send("send_command", strings.Repeat("x", 65<<10))
	code, _ := c.closed()
	require.Equal(t, 1009, code)
}

func TestTooManyListeners(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	admin, err := auth.Authenticate(h.store, h.settings.Current().Authorization, adminToken)
	require.NoError(t, err)
	var ends []func()
	for range limit.Sessions().Object {
		end, err := h.server.sessions.Begin(&auth.Session{Principal: admin, Container: "mc", End: func(error) {}})
		require.NoError(t, err)
		ends = append(ends, end)
	}
	code, _ := h.open("/ws/mc").closed()
	require.Equal(t, 1013, code)
	ends[0]()
	require.Equal(t, "event", h.open("/ws/mc").next()["event"])
	for _, end := range ends {
		end()
	}
}

// TestSlowSocketClient: a client that does not read is closed with 1013 once its
// state events do not fit.
func TestSlowSocketClient(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	slow := h.open("/ws/mc?tail=0")
	slow.next()
	good := h.open("/ws/mc?tail=0")
	good.next()
	big := strings.Repeat("x", 30<<10)
	for range 400 { // more than the system's buffers take
		h.print("mc", v1.ServerConsole, big)
	}
	for i := range 1500 {
		h.hub.Event(v1.Event{Seq: uint64(10 + i), Epoch: h.store.Incarnations.Epoch(), Container: "mc", Event: v1.EventState, Data: "ready", Time: time.Now()})
		if i%100 == 0 {
			for m := good.next(); m["seq"] != float64(10+i); m = good.next() {
			}
		}
	}
	code, _ := slow.closed()
	require.Equal(t, 1013, code)
}

func TestClosedSocketsAreReleased(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	for range 50 {
		c := h.open("/ws/mc")
		c.next()
		require.NoError(t, c.Close())
	}
	require.Eventually(t, func() bool {
		listenedTo, _, _ := h.hub.Listened()
		return len(listenedTo) == 0 && h.server.sessions.Len() == 0
	}, time.Minute, 5*time.Millisecond)
	require.Contains(t, h.do(request{method: "GET", path: "/metrics", accept: "-"}).raw, "berth_websocket_connections 0")
}
