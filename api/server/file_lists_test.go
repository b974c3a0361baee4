package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
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

// TestSlowListReader: the memory of large answers is bounded until their clients have read them.
func TestSlowListReader(t *testing.T) {
	h := newFileHarness(t)
	const many = 30_000
	for i := range many { // 7 MiB of names: more than the system keeps for a client
		require.NoError(t, os.WriteFile(fmt.Sprintf("%s/%0240d", h.dir, i), nil, 0o600))
	}
	all := request{method: "GET", path: h.at("files", "path", "."), token: h.mint(object{"scopes": []string{"read"}})}
	refused := func() bool {
		a := h.do(all)
		if a.status == 200 {
			var body filesBody
			require.NoError(t, json.Unmarshal([]byte(a.raw), &body))
			require.Len(t, body.Files, many)
			return false
		}
		require.Equal(t, "429 too_many_operations 5", fmt.Sprint(a.status, " ", a.header.Get("X-Error-Code"), " ", a.header.Get("Retry-After")))
		return true
	}
	var slow []net.Conn
	for { // fast: a client that reads nothing for 30 s is dropped
		require.LessOrEqual(t, len(slow), limit.Answers().Tenant/7)
		c, err := net.Dial("tcp", strings.TrimPrefix(h.base, "http://"))
		require.NoError(t, err)
		defer c.Close()
		_, err = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nAccept: Application/vnd.berthv1+json\r\nAuthorization: Bearer %s\r\n\r\n", all.path, all.token)
		require.NoError(t, err)
		status := make([]byte, len("HTTP/1.1 200"))
		_, err = io.ReadFull(c, status)
		require.NoError(t, err)
		if string(status) == "HTTP/1.1 429" {
			break
		}
		require.Equal(t, "HTTP/1.1 200", string(status))
		slow = append(slow, c)
		require.Zero(t, h.server.handlers.files.permits.lists.Used(), "nothing is held for which others wait")
	}
	require.True(t, refused())
	require.Greater(t, len(slow), 4)
	require.Equal(t, 200, h.do(request{method: "GET", path: all.path}).status, "of another tenant")
	for _, c := range slow {
		require.NoError(t, c.Close())
	}
	require.Eventually(t, func() bool { return !refused() }, time.Minute, 10*time.Millisecond)
}

// TestMediaTypes: lists and searches have the types of files if they are asked for.
func TestMediaTypes(t *testing.T) {
	h := newFileHarness(t)
	h.put("world/page.txt", "<html>")
	h.put("world/sub/x", "")
	require.NoError(t, os.Symlink("page.txt", filepath.Join(h.dir, "world/link")))
	types := func(path string, query ...string) (list []string) {
		for _, e := range h.must("GET", h.at(path, query...), nil).json["files"].([]any) {
			mime, _ := e.(object)["mime"].(string)
			list = append(list, mime)
		}
		return list
	}
	require.Equal(t, []string{"", "", "text/html; charset=utf-8"}, types("files", "path", "world", "mime", "true"))
	require.Equal(t, []string{"", "", ""}, types("files", "path", "world"))
	require.Equal(t, []string{"text/html; charset=utf-8"}, types("files/search", "query", "page", "path", "world", "mime", "true"))
	require.Equal(t, []string{""}, types("files/search", "query", "page"))
	require.Equal(t, []string{""}, types("files/search", "query", "sub", "mime", "true"))
	h.refuse(400, "mime: must be true or false", "GET", h.at("files", "mime", "x"), nil)
}
