package server

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

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
	require.Equal(t, "attachment; filename=\"_n_ \\\"x\\\".log\"; filename*=utf-8''%C3%BCn%C3%AF%20%22x%22.log", a.header.Get("Content-Disposition"))
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

// TestFormIsNoFile: `curl -F` sends the file within a form.
func TestFormIsNoFile(t *testing.T) {
	h := newFileHarness(t)
	h.put("a.jar", "old")
	const form = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.jar\"\r\n\r\njar\r\n--x--\r\n"
	for kind, status := range map[string]int{
		"multipart/form-data; boundary=x": 415, "Multipart/Form-Data": 415, " multipart/form-data ;x": 415,
		"application/x-www-form-urlencoded": 200, "application/octet-stream": 200, "multipart/mixed; boundary=x": 200, "": 200,
	} {
		h.put("a.jar", "old")
		a := h.do(request{method: "PUT", path: h.at("files/content", "path", "a.jar"), accept: "-", body: form, header: http.Header{"Content-Type": {kind}}})
		require.Equal(t, status, a.status, kind)
		if status == 415 {
			require.Equal(t, "unsupported_media_type", a.header.Get("X-Error-Code"), kind)
			require.Contains(t, a.json["error"], "--data-binary")
			require.Equal(t, "old", h.get("a.jar"), kind)
		}
	}
}

// TestLostUpdate: of two clients that edit a file, the second one to save is refused.
func TestLostUpdate(t *testing.T) {
	h := newFileHarness(t)
	put := func(path, content string, header http.Header) answer {
		return h.do(request{method: "PUT", path: h.at("files/content", "path", path), accept: "-", body: content, header: header})
	}
	post := func(path, content string, header http.Header) answer {
		return h.do(request{method: "POST", path: h.at("files"), body: fmt.Sprintf(`{"path":%q,"content":%q}`, path, content), header: header})
	}
	for name, write := range map[string]func(path, content string, header http.Header) answer{"PUT": put, "POST": post} {
		t.Run(name, func(t *testing.T) {
			path := name + ".txt"
			h.put(path, "first")
			opened := h.download(nil, path).header.Get("ETag")
			a := write(path, "of one", http.Header{"If-Match": {opened}})
			require.Equal(t, 200, a.status, a.raw)
			saved := a.header.Get("ETag")
			require.Equal(t, h.download(nil, path).header.Get("ETag"), saved)
			for _, c := range []struct {
				header, value string
				status        int
			}{
				{"If-Match", opened, 412}, {"If-Match", "nonsense", 412}, {"If-Match", "W/" + opened, 412},
				{"If-None-Match", "*", 412}, {"If-None-Match", saved, 412},
			} {
				a := write(path, "of the other", http.Header{c.header: {c.value}})
				require.Equal(t, fmt.Sprint(c.status, " precondition_failed"), fmt.Sprint(a.status, " ", a.header.Get("X-Error-Code")), c.value)
				require.Contains(t, a.json["error"], c.header)
				require.Equal(t, "of one", h.get(path), c.value)
			}
			for _, header := range []http.Header{
				{"If-Match": {`"other", ` + saved}}, {"If-Match": {"*"}}, {"If-None-Match": {opened}}, {},
			} {
				require.Equal(t, 200, write(path, "again", header).status, header)
				h.put(path, "of one")
				require.NoError(t, os.Remove(filepath.Join(h.dir, path)))
				h.put(path, "of one")
			}
			require.Equal(t, 412, write(name+"/new", "x", http.Header{"If-Match": {"*"}}).status)
			require.Equal(t, 200, write(name+"/new", "x", http.Header{"If-None-Match": {"*"}}).status)
			require.Equal(t, 412, write(name+"/new", "y", http.Header{"If-None-Match": {"*"}}).status)
			require.Equal(t, "x", h.get(name+"/new"))
		})
	}
}

// TestDeleteOfAChangedFile: of two clients, the one that has not seen the other's change deletes nothing.
func TestDeleteOfAChangedFile(t *testing.T) {
	h := newFileHarness(t)
	remove := func(path string, header http.Header) answer {
		return h.do(request{method: "DELETE", path: h.at("files", "path", path), header: header})
	}
	tagOf := func(path string) string { return h.download(nil, path).header.Get("ETag") }
	h.put("f", "first")
	require.NoError(t, os.Symlink("f", filepath.Join(h.dir, "link")))
	opened := tagOf("f")
	h.put("f", "of another client")
	for _, path := range []string{"f", "link"} {
		for _, header := range []http.Header{{"If-Match": {opened}}, {"If-Match": {"nonsense"}}, {"If-None-Match": {tagOf("f")}}} {
			a := remove(path, header)
			require.Equal(t, "412 precondition_failed", fmt.Sprint(a.status, " ", a.header.Get("X-Error-Code")), header)
			require.Equal(t, "of another client", h.get(path), header)
		}
	}
	require.Equal(t, 404, remove("none", http.Header{"If-Match": {opened}}).status)
	require.Equal(t, 200, remove("link", http.Header{"If-Match": {tagOf("link")}}).status)
	require.Equal(t, "of another client", h.get("f"), "a link alone is deleted")
	require.Equal(t, 200, remove("f", http.Header{"If-Match": {tagOf("f")}}).status)
	require.NoFileExists(t, filepath.Join(h.dir, "f"))

	require.NoError(t, os.Symlink("/outside", filepath.Join(h.dir, "link")))
	require.Equal(t, 400, remove("link", http.Header{"If-Match": {"*"}}).status, "it has no content to compare")
	require.Equal(t, 200, remove("link", nil).status)
	require.NoError(t, os.Symlink("nothing", filepath.Join(h.dir, "link")))
	require.Equal(t, 412, remove("link", http.Header{"If-Match": {"*"}}).status)
	h.put("folder/f", "x")
	require.Equal(t, 200, remove("folder", http.Header{"If-Match": {"*"}}).status)
}

// TestLostUpdateAtOnce: the file is compared when all of the content is there, just before it is replaced.
func TestLostUpdateAtOnce(t *testing.T) {
	h := newFileHarness(t)
	h.put("f", "first")
	tag := h.download(nil, "f").header.Get("ETag")
	body, sent := io.Pipe()
	ended := make(chan *http.Response, 1)
	go func() {
		req, _ := http.NewRequest("PUT", h.base+h.at("files/content", "path", "f"), body)
		req.Header.Set("Authorization", "Bearer "+adminToken)
		req.Header.Set("If-Match", tag)
		resp, _ := h.client.Do(req)
		ended <- resp
	}()
	_, err := sent.Write([]byte("begun"))
	require.NoError(t, err)
	a := h.do(request{method: "PUT", path: h.at("files/content", "path", "f"), accept: "-", body: "meanwhile", header: http.Header{"If-Match": {tag}}})
	require.Equal(t, 200, a.status, a.raw)
	require.NoError(t, sent.Close())
	resp := <-ended
	require.NotNil(t, resp)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 412, resp.StatusCode)
	require.Equal(t, "meanwhile", h.get("f"))

	var won atomic.Int32 // of many that begin with the same version
	tag = a.header.Get("ETag")
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			r := request{method: "PUT", path: h.at("files/content", "path", "f"), accept: "-", body: fmt.Sprint(i), header: http.Header{"If-Match": {tag}}}
			if i%2 == 1 {
				r = request{method: "DELETE", path: h.at("files", "path", "f"), header: r.header}
			}
			a := h.do(r)
			if a.status == 200 {
				won.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, won.Load())
}

func TestTruncatedUploadKeepsContent(t *testing.T) {
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
	h.must("POST", h.at("files"), object{"path": "f", "content": strings.Repeat("\n", 1<<20)})
	for _, size := range []int{3 << 20, 7 << 20} {
		a := h.call("POST", h.at("files"), object{"path": "f", "content": strings.Repeat("x", size)})
		require.Equal(t, []any{413, "body_too_large"}, []any{a.status, a.header.Get("X-Error-Code")})
		require.Contains(t, a.json["error"], "PUT /volumes/<volume_id>/files/content")
	}
	require.Len(t, h.get("f"), 1<<20)
	require.Zero(t, h.server.handlers.files.bodies.Reserved())
	h.refuse(400, "content: is required", "POST", h.at("files"), object{"path": "f"})
	h.refuse(400, "content: must be a string; mode: unknown field", "POST", h.at("files"), object{"path": "f", "content": 1, "mode": 2})
}

// TestFileLinks: a single-use token in the URL works on the content endpoints only.
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
