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

	"berth/api/limit"
)

// grown returns by how many MiB the heap has grown since before.
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

// TestSlowListReader: clients that request a large list and do not read it hold a
// file each. A volume may have a few of these files.
func TestSlowListReader(t *testing.T) {
	h := newFileHarness(t)
	const many = 3 * largeList
	for i := range many { // 7 MiB of names: more than the system keeps for a client
		require.NoError(t, os.WriteFile(fmt.Sprintf("%s/%0240d", h.dir, i), nil, 0o600))
	}
	all := request{method: "GET", path: h.at("files", "path", ".")}
	sending := func(n int) {
		require.Eventually(t, func() bool { return h.server.handlers.files.permits.largeLists.Used() == n }, 20*time.Second, time.Millisecond)
	}
	var slow []net.Conn
	most := limit.LargeLists().Object
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
		require.Zero(t, h.server.handlers.files.permits.lists.Used(), "nothing is held for which others wait")
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
