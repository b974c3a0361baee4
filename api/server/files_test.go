package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

// fileHarness is a server with one volume whose files are real.
type fileHarness struct {
	*harness
	manager *volume.Manager
	id, dir string
}

func newFileHarness(t *testing.T) *fileHarness {
	t.Helper()
	m, err := volume.New(filepath.Join(t.TempDir(), "volumes"), volume.Options{UID: -1, GID: -1})
	require.NoError(t, err)
	h := &fileHarness{harness: newHarnessWith(t, func(d *Deps) { d.Files = m }), manager: m}
	h.id = h.volume()
	h.dir = m.Path(h.id)
	require.NoError(t, m.Ensure(h.id))
	return h
}

// at returns the path of an endpoint of the volume.
func (h *fileHarness) at(endpoint string, query ...string) string {
	p := "/volumes/" + h.id[:8] + "/" + endpoint
	for i := 0; i < len(query); i += 2 {
		p += []string{"?", "&"}[min(i, 1)] + query[i] + "=" + url.QueryEscape(query[i+1])
	}
	return p
}

func (h *fileHarness) put(name, content string) {
	h.t.Helper()
	p := filepath.Join(h.dir, name)
	require.NoError(h.t, os.MkdirAll(filepath.Dir(p), 0o755))
	require.NoError(h.t, os.WriteFile(p, []byte(content), 0o644))
}

func (h *fileHarness) get(name string) string {
	h.t.Helper()
	data, err := os.ReadFile(filepath.Join(h.dir, name))
	require.NoError(h.t, err)
	return string(data)
}

const traversal = "Invalid path: path traversal detected"

func TestFiles(t *testing.T) {
	h := newFileHarness(t)
	a := h.must("POST", "/volumes/"+h.id+"/files", object{"path": "a/b.txt", "content": "hello"})
	require.Equal(t, "a/b.txt", a.json["path"])
	require.NotEmpty(t, a.json["message"])
	require.Equal(t, "hello", h.get("a/b.txt"))
	h.must("POST", h.at("files"), object{"path": "a/empty", "content": ""})
	a = h.must("POST", h.at("folders"), object{"path": "c/d"})
	require.Equal(t, "c/d", a.json["path"])
	h.must("POST", h.at("folders"), object{"path": "c/d"})
	h.refuse(409, "File already exists at path: a/b.txt", "POST", h.at("folders"), object{"path": "a/b.txt"})
	h.refuse(409, "File already exists at path: a", "POST", h.at("files"), object{"path": "a", "content": "x"})

	a = h.must("POST", h.at("copy"), object{"source": "a", "destination": "c/a"})
	require.Equal(t, "a", a.json["source"])
	require.Equal(t, "c/a", a.json["destination"])
	h.refuse(404, "Path not found: none", "POST", h.at("copy"), object{"source": "none", "destination": "x"})
	h.must("POST", h.at("rename"), object{"source": "c/a/b.txt", "destination": "renamed"})
	h.refuse(409, "File already exists at path: a", "POST", h.at("rename"), object{"source": "renamed", "destination": "a"})
	h.must("POST", h.at("chmod"), object{"path": "renamed", "mode": "0600"})
	h.refuse(400, "mode: must be an octal number up to 0777, as a string", "POST", h.at("chmod"), object{"path": "renamed", "mode": "4755"})

	a = h.must("GET", h.at("files"), nil)
	var names []string
	for _, e := range a.json["files"].([]any) {
		names = append(names, fmt.Sprint(e.(object)["type"], " ", e.(object)["name"], " ", e.(object)["mode"], " ", e.(object)["size"]))
	}
	require.Equal(t, []string{"directory a 0755 0", "directory c 0755 0", "file renamed 0600 5"}, names)
	require.Len(t, h.must("GET", h.at("files", "path", "a"), nil).json["files"], 2)
	require.Len(t, h.must("GET", h.at("files", "path", ""), nil).json["files"], 3)
	h.refuse(404, "Path not found: none", "GET", h.at("files", "path", "none"), nil)
	require.Len(t, h.must("GET", h.at("files/search", "query", "empty"), nil).json["files"], 2)
	h.must("DELETE", h.at("files", "path", "c"), nil)
	require.NoDirExists(t, filepath.Join(h.dir, "c"))
	h.refuse(404, "Path not found: c", "DELETE", h.at("files", "path", "c"), nil)
	h.refuse(404, "Volume not found", "GET", "/volumes/ffffffff/files", nil)
}

// slowFiles is a Files whose Compress blocks until its context ends.
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
	case <-time.After(3 * time.Minute):
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

func TestOperationEndsWithClient(t *testing.T) {
	h, f, id := newSlow(t)
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- h.slowRequest(ctx, id) }()
	waitFor(t, "it did not begin", f.begun)
	leave()
	require.ErrorIs(t, <-gone, context.Canceled)
	waitFor(t, "it went on", f.ended)
}

func TestOperationEndsWithServer(t *testing.T) {
	h, f, id := newSlow(t)
	answered := make(chan error, 1)
	go func() { answered <- h.slowRequest(t.Context(), id) }()
	waitFor(t, "it did not begin", f.begun)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, h.server.Shutdown(ctx))
	waitFor(t, "it went on", f.ended)
	if err := <-answered; err != nil && !errors.Is(err, io.EOF) {
		require.NoError(t, err)
	}
}

// raw sends text, closes the write side, and returns the status line of the answer.
func (h *harness) raw(text string) string {
	h.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(h.base, "http://"))
	require.NoError(h.t, err)
	defer c.Close()
	require.NoError(h.t, c.SetDeadline(time.Now().Add(3*time.Minute)))
	_, err = io.WriteString(c, text)
	require.NoError(h.t, err)
	require.NoError(h.t, c.(*net.TCPConn).CloseWrite())
	line, _ := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(line)
}

// TestOperationWaitsForNewVolume writes to a volume whose directory does not exist yet.
func TestOperationWaitsForNewVolume(t *testing.T) {
	h := newFileHarness(t)
	require.NoError(t, os.RemoveAll(h.dir))
	h.refuse(503, "Volume directory is missing", "GET", h.at("files"), nil)
}
