package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// slowFiles has a compression that takes until its context ends.
type slowFiles struct {
	Files
	begun, ended chan struct{}
}

func (f *slowFiles) Compress(ctx context.Context, _ string, _ v1.Compression) (v1.Archive, error) {
	close(f.begun)
	<-ctx.Done()
	close(f.ended)
	return v1.Archive{}, ctx.Err()
}

func waitFor(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal(what)
	}
}

func newSlow(t *testing.T) (*harness, *slowFiles, string) {
	t.Helper()
	f := &slowFiles{begun: make(chan struct{}), ended: make(chan struct{})}
	h := newHarnessWith(t, func(d *Deps) { d.Files = f })
	return h, f, h.volume()
}

func (h *harness) slowRequest(ctx context.Context, id string) error {
	req, err := http.NewRequestWithContext(ctx, "POST", h.base+"/volumes/"+id+"/compress", strings.NewReader(`{"output_name":"x"}`))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+adminToken)
	req.Header.Set("Accept", "Application/vnd.berthv1+json")
	resp, err := h.client.Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != 503 {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return resp.Body.Close()
}

func TestLongOperationEndsWhenItsClientLeaves(t *testing.T) {
	h, f, id := newSlow(t)
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- h.slowRequest(ctx, id) }()
	waitFor(t, "it did not begin", f.begun)
	leave()
	require.ErrorIs(t, <-gone, context.Canceled)
	waitFor(t, "it went on", f.ended)
}

func TestLongOperationEndsWithTheServer(t *testing.T) {
	h, f, id := newSlow(t)
	answered := make(chan error, 1)
	go func() { answered <- h.slowRequest(t.Context(), id) }()
	waitFor(t, "it did not begin", f.begun)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	require.NoError(t, h.server.Shutdown(ctx))
	waitFor(t, "it went on", f.ended)
	if err := <-answered; err != nil && !errors.Is(err, io.EOF) {
		require.NoError(t, err)
	}
}

// raw sends text and half-closes, and gives the answer's status line.
func (h *harness) raw(text string) string {
	h.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(h.base, "http://"))
	require.NoError(h.t, err)
	defer c.Close()
	require.NoError(h.t, c.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = io.WriteString(c, text)
	require.NoError(h.t, err)
	require.NoError(h.t, c.(*net.TCPConn).CloseWrite())
	line, _ := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(line)
}

func TestUploadThatIsCutOffKeepsTheOldContent(t *testing.T) {
	h := newFileHarness(t)
	h.put("f", "old")
	head := "PUT " + h.at("files/content", "path", "f") + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + adminToken + "\r\n"
	for _, body := range []string{
		"Content-Length: 100\r\n\r\nonly this",
		"Content-Length: 3000000\r\n\r\n" + strings.Repeat("x", 2_000_000),
		"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"Transfer-Encoding: chunked\r\n\r\n50\r\nhello\r\n",
		"Transfer-Encoding: chunked\r\n\r\nnonsense\r\n",
		"Transfer-Encoding: chunked\r\n\r\n-1\r\nhello\r\n0\r\n\r\n",
		"Transfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\nhello\r\n0\r\n\r\n",
		"Transfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n",
	} {
		answer := h.raw(head + body)
		require.NotContains(t, answer, "200", "%.40q", body)
		require.NotContains(t, answer, " 500 ", "%.40q", body)
		require.Equal(t, "old", h.get("f"))
		list, err := os.ReadDir(h.dir)
		require.NoError(t, err)
		require.Len(t, list, 1)
	}
	require.Contains(t, h.raw(head+"Content-Length: 3\r\n\r\nnew"), "200")
	require.Equal(t, "new", h.get("f"))
}

func TestWriteLimits(t *testing.T) {
	h := newFileHarness(t)
	h.settings.change(func(c *v1.Config) { c.Storage.MaxFileSize, c.Server.BodyLimit = 3<<20, 1<<10 })
	h.must("POST", h.at("files"), object{"path": "f", "content": strings.Repeat("\n", 2<<20)})
	for _, size := range []int{3<<20 + 1, 7 << 20} {
		a := h.call("POST", h.at("files"), object{"path": "f", "content": strings.Repeat("x", size)})
		require.Equal(t, 413, a.status)
	}
	require.Len(t, h.get("f"), 2<<20)
	h.refuse(400, "content: is required", "POST", h.at("files"), object{"path": "f"})
	h.refuse(400, "content: must be a string; mode: unknown field", "POST", h.at("files"), object{"path": "f", "content": 1, "mode": 2})
}

// TestFileLinks is about links for browsers: a token that is spent by one use,
// in the URL, on the content endpoints alone.
func TestFileLinks(t *testing.T) {
	h := newFileHarness(t)
	h.put("f", "content")
	h.container("mc", h.id)
	other := h.volume()
	require.NoError(t, h.manager.Ensure(other))
	mint := func() string {
		return h.mint(object{"ttl": "1h", "remove_on_use": true, "scopes": []string{"files"}, "containers": []string{"mc"}})
	}
	token := mint()
	link := request{method: "GET", path: h.at("files/content", "path", "f", "token", token), token: "-", accept: "-"}
	require.Equal(t, 200, h.do(link).status)
	require.Equal(t, 401, h.do(link).status, "it is spent")
	up := request{method: "PUT", path: h.at("files/content", "path", "up", "token", mint()), token: "-", accept: "-", body: "x"}
	require.Equal(t, 401, h.do(up).status, "not in the URL of an upload")
	up.path, up.token = h.at("files/content", "path", "up"), mint()
	require.Equal(t, 200, h.do(up).status)
	require.Equal(t, "x", h.get("up"))
	list := request{method: "GET", path: h.at("files", "token", mint()), token: "-"}
	require.Equal(t, 401, h.do(list).status, "not in the URL of other endpoints")
	foreign := request{method: "GET", path: "/volumes/" + other + "/files/content?path=f", token: mint(), accept: "-"}
	require.Equal(t, 404, h.do(foreign).status)
	read := h.mint(object{"scopes": []string{"read"}})
	require.Equal(t, 200, h.do(request{method: "GET", path: h.at("files"), token: read}).status)
	require.Equal(t, 403, h.do(request{method: "DELETE", path: h.at("files", "path", "f"), token: read}).status)
	require.FileExists(t, filepath.Join(h.dir, "f"))
}

// TestNewVolumeIsWaitedFor writes to a volume whose directory is still to come.
func TestNewVolumeIsWaitedFor(t *testing.T) {
	h := newFileHarness(t)
	require.NoError(t, os.RemoveAll(h.dir))
	h.refuse(503, "Volume directory is missing", "GET", h.at("files"), nil)
}
