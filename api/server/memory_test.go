package server

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	heapmetrics "runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// peak is by how many MiB the heap grows at most while work is done.
func peak(work func()) int64 {
	heap := []heapmetrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	runtime.GC()
	heapmetrics.Read(heap)
	before, most := heap[0].Value.Uint64(), uint64(0)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			heapmetrics.Read(heap)
			most = max(most, heap[0].Value.Uint64())
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

// TestManyBodiesCostLittle sends a hundred at once that are nothing but values,
// where a field is unknown, ignored, or a list of objects.
func TestManyBodiesCostLittle(t *testing.T) {
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
			t.Logf("the heap grew by at most %d MiB", most)
			require.Less(t, most, int64(256))
			require.Equal(t, 200, h.do(request{method: "POST", path: "/auth/tokens", body: "{}"}).status)
		})
	}
}

// postBad sends a body, and takes 400 or 503 for an answer.
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

// TestLargeWritesCostLittle writes files of 8 MiB at once, whose content comes
// before its path.
func TestLargeWritesCostLittle(t *testing.T) {
	h := newFileHarness(t)
	h.settings.change(func(c *v1.Config) { c.Storage.MaxFileSize = 8 << 20 })
	h.client.Timeout = 0
	content := strings.Repeat("0123456789abcde\n", 1<<19)
	body := `{"content":"` + strings.ReplaceAll(content, "\n", `\n`) + `","path":"`
	most := peak(func() {
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				whole := io.LimitReader(io.MultiReader(strings.NewReader(body), strings.NewReader(fmt.Sprintf(`f%d"}`, i))), 1<<30) // no copy of a whole string
				req, err := http.NewRequest("POST", h.base+h.at("files"), whole)
				require.NoError(t, err)
				req.Header.Set("Authorization", "Bearer "+adminToken)
				req.Header.Set("Accept", "Application/vnd.berthv1+json")
				resp, err := h.client.Do(req)
				if assert.NoError(t, err) {
					defer resp.Body.Close()
					assert.Contains(t, []int{200, 503}, resp.StatusCode)
				}
			})
		}
		all.Wait()
	})
	t.Logf("the heap grew by at most %d MiB", most)
	require.Less(t, most, int64(16))
	require.Equal(t, 200, h.do(request{method: "POST", path: h.at("files"), body: body + `last"}`}).status)
	require.Equal(t, content, h.get("last"))
	memory, disk := h.server.handlers.files.decoder.bodies.Reserved()
	require.Zero(t, memory)
	require.Zero(t, disk)
	for path, text := range map[string]string{"more": body + `more","x":1}`, "cut": body + `cut"`, "large": `{"path":"large","content":"` + content + `x"}`} {
		require.GreaterOrEqual(t, h.do(request{method: "POST", path: h.at("files"), body: text}).status, 400, path)
		require.NoFileExists(t, h.dir+"/"+path)
	}
}
