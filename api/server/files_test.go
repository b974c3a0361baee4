package server

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

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
	h := &fileHarness{harness: newHarnessWith(t, func(d *Deps) { d.Files = m.Files() }), manager: m}
	h.id = h.volume()
	h.dir = m.Path(h.id)
	require.NoError(t, m.Ensure(h.id))
	return h
}

// at is the path of an endpoint of the volume.
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

func TestArchives(t *testing.T) {
	h := newFileHarness(t)
	h.put("src/a", "a")
	h.put("src/b/c", "c")
	for _, format := range v1.Formats() {
		a := h.must("POST", h.at("compress"), object{"format": format, "output_name": "out", "path": "src"})
		require.Equal(t, "src/out."+format, a.json["archive_path"])
		require.Positive(t, a.json["size"])
		h.refuse(409, "File already exists at path: src/out."+format, "POST", h.at("compress"),
			object{"format": format, "output_name": "out", "path": "src"})
		a = h.must("POST", h.at("decompress"), object{"archive_path": "src/out." + format, "destination": "to/" + format})
		require.Equal(t, "to/"+format, a.json["destination"])
		require.Equal(t, "c", h.get("to/"+format+"/b/c"))
		require.NoError(t, os.Remove(filepath.Join(h.dir, "src/out."+format)))
	}
	a := h.must("POST", h.at("compress"), object{"output_name": "some", "paths": []string{"src/b", "src/a"}})
	require.Equal(t, "some.tar.gz", a.json["archive_path"])
	h.refuse(400, "format: must be one of zip, tar, tar.gz, tar.bz2", "POST", h.at("compress"), object{"output_name": "x", "format": "rar"})
	h.refuse(400, "output_name: is required", "POST", h.at("compress"), object{})
	h.refuse(400, "destination: is required", "POST", h.at("decompress"), object{"archive_path": "a"})
	h.refuse(404, "Path not found: none", "POST", h.at("decompress"), object{"archive_path": "none", "destination": "x"})
	require.Equal(t, "invalid_archive", h.call("POST", h.at("decompress"),
		object{"archive_path": "src/a", "destination": "x"}).header.Get("X-Error-Code"))
}

func (h *fileHarness) download(header http.Header, path string) answer {
	return h.do(request{method: "GET", path: h.at("files/content", "path", path), accept: "-", header: header})
}

func TestDownload(t *testing.T) {
	h := newFileHarness(t)
	h.put("folder/ünï \"x\".log", "0123456789")
	name := "folder/ünï \"x\".log"
	a := h.download(nil, name)
	require.Equal(t, "200 0123456789", fmt.Sprint(a.status, " ", a.raw))
	require.Equal(t, "application/octet-stream", a.header.Get("Content-Type"))
	require.Equal(t, "attachment; filename*=utf-8''%C3%BCn%C3%AF%20%22x%22.log", a.header.Get("Content-Disposition"))
	require.Equal(t, "bytes", a.header.Get("Accept-Ranges"))
	tag := a.header.Get("ETag")
	require.NotEmpty(t, tag)
	for _, c := range []struct {
		name, value, want, contentRange string
		status                          int
	}{
		{"Range", "bytes=2-4", "234", "bytes 2-4/10", 206},
		{"Range", "bytes=7-", "789", "bytes 7-9/10", 206},
		{"Range", "bytes=-3", "789", "bytes 7-9/10", 206},
		{"Range", "bytes=0-99", "0123456789", "bytes 0-9/10", 206},
		{"Range", "bytes=1-2,4-5", "0123456789", "", 200},
		{"Range", "bytes=5-2", "0123456789", "", 200},
		{"Range", "lines=1-2", "0123456789", "", 200},
		{"Range", "bytes=+5-", "0123456789", "", 200},
		{"Range", "bytes=5-+7", "0123456789", "", 200},
		{"Range", "bytes=10-", `{"error":"Range not satisfiable"}`, "bytes */10", 416},
		{"If-None-Match", tag, "", "", 304},
		{"If-None-Match", `"other", ` + tag, "", "", 304},
		{"If-None-Match", `"other"`, "0123456789", "", 200},
	} {
		a := h.download(http.Header{c.name: {c.value}}, name)
		require.Equal(t, fmt.Sprint(c.status, " ", c.want, " ", c.contentRange), fmt.Sprint(a.status, " ", a.raw, " ", a.header.Get("Content-Range")), c.value)
	}
	a = h.download(http.Header{"Range": {"bytes=2-4"}, "If-Range": {tag}}, name)
	require.Equal(t, 206, a.status)
	a = h.download(http.Header{"Range": {"bytes=2-4"}, "If-Range": {`"other"`}}, name)
	require.Equal(t, 200, a.status)

	h.must("POST", h.at("files"), object{"path": name, "content": "0123456789"})
	require.NotEqual(t, tag, h.download(nil, name).header.Get("ETag"), "replaced by the same content in a moment")
	h.put("empty", "")
	require.Equal(t, "200 ", fmt.Sprint(h.download(nil, "empty").status, " ", h.download(nil, "empty").raw))
	require.Equal(t, 404, h.download(nil, "none").status)
	require.Equal(t, 400, h.download(nil, "folder").status)
	head := h.do(request{method: "HEAD", path: h.at("files/content", "path", name), accept: "-"})
	require.Equal(t, "10", head.header.Get("Content-Length"))
}

func TestUpload(t *testing.T) {
	h := newFileHarness(t)
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<17)
	a := h.do(request{method: "PUT", path: h.at("files/content", "path", "up/big"), accept: "-", body: string(big)})
	require.Equal(t, 200, a.status, a.raw)
	require.Equal(t, "up/big", a.json["path"])
	require.Equal(t, string(big), h.get("up/big"))
	req, err := http.NewRequest("PUT", h.base+h.at("files/content", "path", "chunked"), io.MultiReader(bytes.NewReader(big)))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+adminToken)
	resp, err := h.client.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 200, resp.StatusCode)
	require.Equal(t, string(big), h.get("chunked"))
	a = h.do(request{method: "PUT", path: h.at("files/content", "path", "x"), body: "x", header: http.Header{"Content-Encoding": {"gzip"}}})
	require.Equal(t, 415, a.status)
	h.put("parts", "0123456789")
	a = h.do(request{method: "PUT", path: h.at("files/content", "path", "parts"), body: "x", header: http.Header{"Content-Range": {"bytes 5-5/10"}}})
	require.Equal(t, 400, a.status)
	require.Equal(t, "0123456789", h.get("parts"))
	h.manager.SetLimit(h.id, 1, v1.Usage{})
	a = h.do(request{method: "PUT", path: h.at("files/content", "path", "x"), body: "x"})
	require.Equal(t, "413 Volume size limit exceeded", fmt.Sprint(a.status, " ", a.json["error"]))
}
