package server

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// extract sends an archive.
func (h *fileHarness) extract(body string, query ...string) answer {
	return h.do(request{method: "PUT", path: h.at("archive", query...), accept: "-", body: body})
}

// TestExtractArchive: an archive that is sent is extracted, and the answer and the audit log are those of decompress.
func TestExtractArchive(t *testing.T) {
	h := newFileHarness(t)
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	w := tar.NewWriter(z)
	for name, kind := range map[string]byte{"world/": tar.TypeDir, "pipe": tar.TypeFifo} {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Typeflag: kind, Mode: 0o755}))
	}
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "world/level.dat", Mode: 0o600, Size: 4}))
	_, err := w.Write([]byte("seed"))
	require.NoError(t, errors.Join(err, w.Close(), z.Close()))
	seen := len(audited(h.harness, 0))
	a := h.extract(buf.String(), "path", "up/there", "format", "tar.gz")
	require.Equal(t, 200, a.status, a.raw)
	require.JSONEq(t, `{"message":"Extracted successfully","destination":"up/there","skipped":[{"path":"pipe","reason":"special"}],"skipped_total":1}`, a.raw)
	require.Equal(t, "seed", h.get("up/there/world/level.dat"))
	a = h.extract(archiveOf(t, "at the top"))
	require.Equal(t, ".", a.json["destination"])
	require.Equal(t, "mine", h.get("at the top"))

	before := h.around()
	for _, c := range []struct {
		body, want string
		query      []string
	}{
		{buf.String(), "400 invalid_archive Archive is not in the format zip, which was announced", []string{"format", "zip"}},
		{buf.String(), "400 invalid_request format: must be one of tar, tar.gz, tar.zst, zip", []string{"format", "rar"}},
		{buf.String(), `400 invalid_request encoding: "nonsense" is not known`, []string{"encoding", "nonsense"}},
		{buf.String()[:buf.Len()/2], "400 invalid_archive Archive is damaged: unexpected EOF", nil},
		{"", "400 invalid_archive Not an archive", nil},
		{archiveOf(t, "../up"), "400 invalid_path " + traversal, nil},
		{archiveOf(t, "x"), "409 file_exists File already exists at path: at the top", []string{"path", "at the top"}},
		{archiveOf(t, "up"), "409 file_exists File already exists at path: up", nil},
	} {
		a := h.extract(c.body, c.query...)
		require.Contains(t, fmt.Sprint(a.status, " ", a.header.Get("X-Error-Code"), " ", a.json["error"]), c.want)
	}
	for _, header := range []http.Header{{"Content-Type": {"multipart/form-data; boundary=x"}}, {"Content-Encoding": {"gzip"}}} {
		require.Equal(t, 415, h.do(request{method: "PUT", path: h.at("archive"), body: buf.String(), header: header}).status)
	}
	require.Equal(t, 400, h.do(request{method: "PUT", path: h.at("archive"), body: buf.String(), header: http.Header{"Content-Range": {"bytes 0-1/2"}}}).status)
	require.Equal(t, 403, h.do(request{method: "PUT", path: h.at("archive"), body: buf.String(), token: h.mint(object{"scopes": []string{"read"}})}).status)
	require.Equal(t, before, h.around(), "a refusal leaves nothing")

	list := h.must("GET", "/audit?last=100", nil).json["entries"].([]any)[seen:]
	first := list[0].(object)
	require.Equal(t, []any{"archive.extract", h.id + "/up/there", 200.0}, []any{first["action"], first["object"], first["status"]})
	require.Equal(t, []any{"archive.extract", 400.0}, []any{list[2].(object)["action"], list[2].(object)["status"]})
}

// TestExtractArchiveCut: an archive whose connection is cut, or whose encoding is broken, leaves nothing.
func TestExtractArchiveCut(t *testing.T) {
	h := newFileHarness(t)
	var buf bytes.Buffer // more than the HTTP library reads ahead
	w := tar.NewWriter(&buf)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "f", Mode: 0o600, Size: 1 << 20}))
	_, err := w.Write(bytes.Repeat([]byte("mine"), 1<<18))
	require.NoError(t, errors.Join(err, w.Close()))
	data := buf.String()
	head := "PUT " + h.at("archive") + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + adminToken + "\r\n"
	for _, body := range []string{
		fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(data)+1, data),
		fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(data), data[:len(data)-1]),
		fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(data), data[:600]),
		fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(data), data),
		fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\nnonsense\r\n", len(data), data),
	} {
		answer := h.raw(head + body)
		require.NotContains(t, answer, " 200 ", "%.40q", body)
		require.NotContains(t, answer, " 500 ", "%.40q", body)
		for _, dir := range []string{h.dir, filepath.Join(h.dir, "../.tmp", h.id)} {
			list, _ := os.ReadDir(dir) // of temporary entries there may be none yet
			require.Empty(t, list, "%.40q", body)
		}
	}
	require.Contains(t, h.raw(head+fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(data), data)), " 200 ")
	require.Len(t, h.get("f"), 1<<20)
}

// TestExtractArchiveEnds: an archive that is sent slowly ends with its token, and leaves nothing.
func TestExtractArchiveEnds(t *testing.T) {
	h := newFileHarness(t)
	minted := h.must("POST", "/auth/tokens", object{"scopes": []string{"files"}}).json
	body, sent := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		req, _ := http.NewRequest("PUT", h.base+h.at("archive"), body)
		req.Header.Set("Authorization", "Bearer "+minted["token"].(string))
		resp, err := h.client.Do(req)
		if err == nil {
			err = fmt.Errorf("%w: status %d", resp.Body.Close(), resp.StatusCode)
		}
		ended <- err
	}()
	data := archiveOf(t, "f")
	_, err := io.WriteString(sent, data[:700])
	require.NoError(t, err)
	require.Eventually(t, func() bool { return h.server.handlers.files.permits.streams.Used() == 1 }, 3*time.Minute, time.Millisecond)
	h.must("DELETE", "/auth/tokens/"+minted["id"].(string), nil)
	require.Eventually(t, func() bool { return h.server.handlers.files.permits.streams.Used() == 0 }, 3*time.Minute, time.Millisecond)
	require.NoError(t, sent.CloseWithError(io.ErrClosedPipe)) // the client waits for it
	err = <-ended
	require.Error(t, err)
	require.NotContains(t, err.Error(), "status 200")
	list, err := os.ReadDir(h.dir)
	require.NoError(t, err)
	require.Empty(t, list)
}

// TestExtractArchiveDenied: a limited token extracts nothing onto what is denied to it.
func TestExtractArchiveDenied(t *testing.T) {
	h := newFileHarness(t)
	h.put("server.jar", "old")
	h.must("POST", "/containers", object{"internal_id": "mc", "image": "busybox:1", "volume_id": h.id, "denied_files": []string{"/server.jar"}})
	token := h.mint(object{"scopes": []string{"files"}, "containers": []string{"mc"}})
	for name, want := range map[string]string{"server.jar": "403 file_denied", "other.jar": "200 "} {
		a := h.do(request{method: "PUT", path: h.at("archive"), accept: "-", body: archiveOf(t, name), token: token})
		require.Equal(t, want, fmt.Sprint(a.status, " ", a.header.Get("X-Error-Code")), name)
	}
	require.Equal(t, "old", h.get("server.jar"))
	require.Equal(t, "mine", h.get("other.jar"))
}

// TestDownloadArchive: a folder is answered as an archive, and nothing is written to the volume.
func TestDownloadArchive(t *testing.T) {
	h := newFileHarness(t)
	h.put("world/level.dat", "seed")
	h.put("world/logs/x", "log")
	before := h.around()
	get := func(token string, query ...string) answer {
		return h.do(request{method: "GET", path: h.at("archive", query...), accept: "-", token: token})
	}
	a := get("", "path", "world", "format", "tar")
	require.Equal(t, 200, a.status)
	require.Equal(t, "application/octet-stream", a.header.Get("Content-Type"))
	require.Equal(t, "attachment; filename=world.tar", a.header.Get("Content-Disposition"))
	require.ElementsMatch(t, []string{"level.dat", "logs/", "logs/x"}, namesOf(t, a.raw))
	a = get("", "path", "world", "format", "tar", "ignore", "logs/", "ignore", "*.dat")
	require.Empty(t, namesOf(t, a.raw))
	a = get("")
	require.Equal(t, "attachment; filename="+h.id+".tar.gz", a.header.Get("Content-Disposition"))
	require.Equal(t, "\x1f\x8b", a.raw[:2])
	require.Equal(t, before, h.around())

	for status, query := range map[int][]string{400: {"format", "tar.bz2"}, 404: {"path", "none"}} {
		require.Equal(t, status, get("", query...).status)
	}
	long := append([]string{"format", "tar"}, "ignore", strings.Repeat("x", 1025))
	require.Equal(t, "ignore[0]: must be one line of at most 1024 bytes of UTF-8", get("", long...).json["error"])
	require.Equal(t, 403, get(h.mint(object{"scopes": []string{"power"}})).status)
	require.Equal(t, 200, get(h.mint(object{"scopes": []string{"read"}})).status)
	link := request{method: "GET", path: h.at("archive", "token", h.mint(object{"scopes": []string{"files"}, "remove_on_use": true})), token: "-", accept: "-"}
	require.Equal(t, 200, h.do(link).status)
	require.Equal(t, 401, h.do(link).status, "it is spent")
	head := h.do(request{method: "HEAD", path: h.at("archive"), accept: "-"})
	require.Equal(t, 200, head.status)
	require.Eventually(t, func() bool { return h.server.handlers.files.permits.streams.Used() == 0 }, 3*time.Minute, time.Millisecond)
}

func namesOf(t *testing.T, archive string) (names []string) {
	t.Helper()
	for r := tar.NewReader(strings.NewReader(archive)); ; {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		require.NoError(t, err)
		names = append(names, e.Name)
	}
}

// endlessFiles is a Files whose archives fail after some bytes, or end only with the connection.
type endlessFiles struct {
	Files
	fails  error
	closed chan struct{}
}

func (f *endlessFiles) Archive(context.Context, string, v1.Tree) (v1.ArchiveStream, error) {
	return f, nil
}

func (f *endlessFiles) WriteTo(w io.Writer) (n int64, err error) {
	for piece := make([]byte, 64<<10); err == nil; n += int64(len(piece)) {
		if _, err = w.Write(piece); err == nil && n > 1<<20 {
			err = f.fails
		}
	}
	return n, err
}

func (f *endlessFiles) Close() error { f.closed <- struct{}{}; return nil }

// TestDownloadArchiveCut: a client sees that an archive is not complete: it could not be made, or its token was
// revoked. A client that leaves ends it.
func TestDownloadArchiveCut(t *testing.T) {
	f := &endlessFiles{fails: v1.ErrSizeLimit, closed: make(chan struct{}, 1)}
	log := &lines{}
	h := newHarnessWith(t, func(d *Deps) { d.Files, d.Log = f, slog.New(slog.NewTextHandler(log, nil)) })
	id := h.volume()
	open := func(token string) *http.Response {
		req, err := http.NewRequest("GET", h.base+"/volumes/"+id+"/archive", nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := h.client.Do(req)
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		return resp
	}
	ended := func(what string) {
		waitFor(t, what, f.closed)
		require.Eventually(t, func() bool { return h.server.handlers.files.permits.streams.Used() == 0 }, 3*time.Minute, time.Millisecond)
	}
	resp := open(adminToken)
	_, err := io.ReadAll(resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.NoError(t, resp.Body.Close())
	ended("it failed and was not closed")

	f.fails = nil
	minted := h.must("POST", "/auth/tokens", object{"scopes": []string{"files"}}).json
	resp = open(minted["token"].(string))
	h.must("DELETE", "/auth/tokens/"+minted["id"].(string), nil)
	_, err = io.Copy(io.Discard, resp.Body)
	require.Error(t, err)
	require.NoError(t, resp.Body.Close())
	ended("it went on without its token")

	resp = open(adminToken)
	require.NoError(t, resp.Body.Close())
	ended("it went on without its client")
	require.Equal(t, 1, strings.Count(log.String(), "not complete"), "the log has the reason that the answer cannot have: %s", log)
	require.Contains(t, log.String(), v1.ErrSizeLimit.Error())
}
