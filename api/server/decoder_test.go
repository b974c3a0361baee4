package server

import (
	"net/http"
	"runtime"
	"runtime/debug"
	heapmetrics "runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestMediaTypesAndEncodings(t *testing.T) {
	h := newHarness(t)
	for contentType, ok := range map[string]bool{
		"": true, "application/json": true, "application/json; charset=utf-8": true, "Application/JSON": true,
		"text/plain": false, "application/x-www-form-urlencoded": false, "application/json; charset=latin1": false, "multipart/form-data; boundary=x": false, ";": false,
	} {
		header := http.Header{}
		if contentType != "" {
			header.Set("Content-Type", contentType)
		}
		a := h.do(request{method: "POST", path: "/auth/tokens", body: "{}", header: header})
		require.Equal(t, ok, a.status == 200, contentType)
		if !ok {
			require.Equal(t, 415, a.status)
			require.Equal(t, "unsupported_media_type", a.header.Get("X-Error-Code"))
		}
	}
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	require.Equal(t, 201, h.do(request{method: "POST", path: "/volumes", header: form}).status, "what curl -d '' sends")
	for _, encoding := range []string{"gzip", "identity", "br"} {
		a := h.do(request{method: "POST", path: "/auth/tokens", body: "{}", header: http.Header{"Content-Encoding": {encoding}}})
		require.Equal(t, 415, a.status, encoding)
	}
}

func TestBodyLimit(t *testing.T) {
	h := newHarness(t)
	h.settings.change(func(c *v1.Config) { c.Server.BodyLimit = 1000 })
	body := func(n int) string { return `{"ttl":"1h"` + strings.Repeat(" ", n-12) + "}" }
	require.Equal(t, 200, h.do(request{method: "POST", path: "/auth/tokens", body: body(1000)}).status)
	a := h.do(request{method: "POST", path: "/auth/tokens", body: body(1001)})
	require.Equal(t, 413, a.status)
	require.Equal(t, "Request body is too large", a.json["error"])
	require.Equal(t, 413, h.do(request{method: "POST", path: "/auth/tokens", body: body(1 << 20)}).status)
}

// TestManyFieldErrorsUseLittleMemory sends a body with half a million errors.
func TestManyFieldErrorsUseLittleMemory(t *testing.T) {
	h := newHarness(t)
	body := `{"ports":[` + strings.Repeat("{},", 150_000) + `{}]}`
	before := heapNow()
	a := h.do(request{method: "POST", path: "/containers/mc/rebind-network", body: body})
	require.Equal(t, 400, a.status)
	require.Contains(t, a.raw, "ports[0].ip: is required; ports[0].port: is required;")
	require.Contains(t, a.raw, "; and at least 80 more")
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(150))
}

// peak returns how many MiB of the heap are in use at most during work, beyond those
// in use before. It counts what each garbage collection finds in use, not the garbage:
// how much of that there is depends on how busy the machine is. Collections are made
// often, so that few moments are missed.
func peak(work func()) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	live := []heapmetrics.Sample{{Name: "/gc/heap/live:bytes"}}
	runtime.GC()
	heapmetrics.Read(live)
	before, most := live[0].Value.Uint64(), uint64(0)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			heapmetrics.Read(live)
			most = max(most, live[0].Value.Uint64())
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	work()
	close(done)
	<-ended
	return int64(most-min(most, before)) >> 20
}

// TestManyBodiesUseLittleMemory sends a hundred bodies at once that consist of
// values for an unknown field, an ignored field, or a list of objects.
func TestManyBodiesUseLittleMemory(t *testing.T) {
	for name, size := range map[string]int{"1 MiB": 1 << 20, "10 MiB": 10 << 20} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.settings.change(func(c *v1.Config) { c.Server.BodyLimit = v1.Size(size) })
			h.client.Transport = &http.Transport{MaxConnsPerHost: 100}
			fill := strings.Repeat(`{"":0},`, size/7-10)
			fill = fill[:len(fill)-1] + `]}`
			bodies := []string{`{"x":[` + fill, `{"state":[` + fill, `{"ports":[` + fill}
			most := peak(func() {
				var all sync.WaitGroup
				for i := range 100 {
					all.Go(func() { postBad(h, "/containers", bodies[i%3]) })
				}
				all.Wait()
			})
			t.Logf("at most %d MiB more in use", most)
			require.Less(t, most, int64(128))
			require.Equal(t, 200, h.do(request{method: "POST", path: "/auth/tokens", body: "{}"}).status)
		})
	}
}

// postBad sends an invalid body and expects 400 or 503.
func postBad(h *harness, path, body string) {
	req, err := http.NewRequest("POST", h.base+path, strings.NewReader(body))
	if err != nil {
		h.t.Error(err)
		return
	}
	req.Header.Set("Authorization", "Bearer "+adminToken)
	req.Header.Set("Accept", "Application/vnd.berthv1+json")
	resp, err := h.client.Do(req)
	if err != nil {
		h.t.Error(err)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != 400 && resp.StatusCode != 503 {
		h.t.Errorf("status %d", resp.StatusCode)
	}
}
