package server

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/store"
)

// grown is how much more of the heap is in use than before, in MiB.
func grown(before runtime.MemStats) int64 {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return (int64(now.HeapAlloc) - int64(before.HeapAlloc)) >> 20
}

func heapNow() (m runtime.MemStats) {
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m
}

// inUse is how many permits a volume has.
func (l *limiter) inUse(volume string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one := l.by["volume "+volume]; one != nil {
		return one.used
	}
	return 0
}

// TestASlowReaderOfAListHoldsNobodyUp: clients that take a large list and do not
// read it hold a file each, of which a volume has a few.
func TestASlowReaderOfAListHoldsNobodyUp(t *testing.T) {
	h := newFileHarness(t)
	const many = 3 * largeList
	for i := range many { // 7 MiB of names: more than the system keeps for a client
		require.NoError(t, os.WriteFile(fmt.Sprintf("%s/%0240d", h.dir, i), nil, 0o600))
	}
	all := request{method: "GET", path: h.at("files", "path", ".")}
	sending := func(n int) {
		require.Eventually(t, func() bool { return h.server.handlers.files.permits.spools.inUse(h.id) == n }, 20*time.Second, time.Millisecond)
	}
	var slow []net.Conn
	most := h.server.handlers.files.permits.spools.limits.perVolume
	for n := range most {
		c, err := net.Dial("tcp", strings.TrimPrefix(h.base, "http://"))
		require.NoError(t, err)
		defer c.Close()
		_, err = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nAccept: Application/vnd.berthv1+json\r\nAuthorization: Bearer %s\r\n\r\n", all.path, adminToken)
		require.NoError(t, err)
		_, err = c.Read(make([]byte, 1))
		require.NoError(t, err)
		slow = append(slow, c)
		sending(n + 1)
		require.Zero(t, h.server.handlers.files.permits.lists.inUse(h.id), "nothing is held for which others wait")
		if n == 0 {
			a := h.do(all)
			require.Equal(t, 200, a.status)
			var body filesBody
			require.NoError(t, json.Unmarshal([]byte(a.raw), &body))
			require.Len(t, body.Files, many)
			sending(1)
		}
	}
	a := h.do(all)
	require.Equal(t, "429 too_many_operations 5", fmt.Sprint(a.status, " ", a.header.Get("X-Error-Code"), " ", a.header.Get("Retry-After")))
	require.Equal(t, 200, h.do(request{method: "GET", path: h.at("files/search", "query", "x")}).status)
	other := h.volume()
	require.NoError(t, h.manager.Ensure(other))
	require.Equal(t, 200, h.do(request{method: "GET", path: "/volumes/" + other + "/files?path=."}).status)
	for _, c := range slow {
		require.NoError(t, c.Close())
	}
	sending(0)
	require.Equal(t, 200, h.do(request{method: "HEAD", path: all.path}).status)
	sending(0) // also when nobody wants the list itself
}

// TestManyFaultsCostLittle sends a body that has a million.
func TestManyFaultsCostLittle(t *testing.T) {
	h := newHarness(t)
	body := `{"ports":[` + strings.Repeat("{},", 150_000) + `{}]}`
	before := heapNow()
	a := h.do(request{method: "POST", path: "/containers/mc/rebind-network", body: body})
	require.Equal(t, 400, a.status)
	require.Contains(t, a.raw, "ports[0].ip: is required; ports[0].port: is required;")
	require.Contains(t, a.raw, "; and 449984 more")
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(240))
}

// TestLogsThatNobodyReads: a client that asks for the history again and again,
// and reads none of it, holds a few times 4 MiB.
func TestLogsThatNobodyReads(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	for range 150 {
		h.print("mc", v1.ServerConsole, strings.Repeat("x", 30<<10))
	}
	c := h.open("/ws/mc?tail=0")
	c.next()
	before := heapNow()
	for range 40 {
		c.send("request_logs", "10000")
	}
	require.Never(t, func() bool { return grown(before) > 64 }, 2*time.Second, 5*time.Millisecond)
	for range 40 {
		m := c.next()
		require.Equal(t, "logs", m["event"])
		require.Greater(t, len(m["data"].(string)), 3<<20)
	}
}

// TestFewEventsAmongMany: a token that sees few of the transitions does not make
// a search of its own out of each.
func TestFewEventsAmongMany(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	for range 20 {
		require.NoError(t, h.store.Update(func(tx *store.Tx) error {
			for range 1000 {
				store.Emit(tx, v1.Event{Container: "other", Event: v1.EventState, Data: "x"})
			}
			return nil
		}))
	}
	token := h.mint(object{"containers": []string{"mc"}})
	before := heapNow()
	a := h.do(request{method: "GET", path: "/events?since=10&limit=1", token: token})
	require.Empty(t, a.json["events"])
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	require.Less(t, after.Mallocs-before.Mallocs, uint64(20*20_000), "a few for each transition")
}

// TestATokenOfOneUseMintsNoOther that has more.
func TestATokenOfOneUseMintsNoOther(t *testing.T) {
	h := newHarness(t)
	first := h.mint(object{"remove_on_use": true})
	for _, wish := range []string{"{}", `{"remove_on_use":false}`} {
		a := h.do(request{method: "POST", path: "/auth/tokens", token: first, body: wish})
		require.Equal(t, 200, a.status)
		require.Equal(t, 401, h.do(request{method: "GET", path: "/containers", token: first}).status)
		first = a.json["token"].(string)
	}
	require.Equal(t, 200, h.do(request{method: "GET", path: "/containers", token: first}).status)
	require.Equal(t, 401, h.do(request{method: "GET", path: "/containers", token: first}).status)
}
