package node_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/client"
	"berth/cmd/berth-wings/config"
	"berth/hack/test/berthtest"
	"berth/hack/test/paneltest"
)

// TestFileManager is what the page of files does, in the order of a recorded day.
func TestFileManager(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	at := "/api/servers/" + alpha + "/files/"
	names := func(folder string) (list []string) {
		t.Helper()
		var entries []struct {
			Name, Mode, MIME, Modified string
			Bits                       string `json:"mode_bits"`
			File, Directory            bool
		}
		w.Want(t, 200, "GET", at+"list-directory?directory="+url.QueryEscape(folder), nil).Decode(t, &entries)
		for _, e := range entries {
			require.Equal(t, e.Directory, !e.File)
			require.NotEmpty(t, e.Modified)
			list = append(list, e.Name+" "+e.Mode+" "+e.Bits+" "+e.MIME)
		}
		return list
	}
	refused := func(status int, sentence, method, path string, body any) {
		t.Helper()
		require.Equal(t, sentence, w.Want(t, status, method, at+path, body).Error())
	}
	files := func(root string, list ...any) map[string]any { return map[string]any{"root": root, "files": list} }
	const missing = "The requested resources was not found on the system."

	require.Equal(t, []string{"notes drwxr-xr-x 755 inode/directory", "game.txt -rw-r--r-- 644 text/plain; charset=utf-8"}, names("/"))
	w.Want(t, 204, "POST", at+"write?file=notes/today.txt", "hello\n")
	a := w.Want(t, 200, "GET", at+"contents?file=notes/today.txt", nil)
	require.Equal(t, "hello\n", a.Body)
	require.Equal(t, "6", a.Header.Get("Content-Length"))
	require.Equal(t, "text/plain; charset=utf-8", a.Header.Get("X-Mime-Type"))
	a = w.Want(t, 200, "GET", at+"contents?file=notes/today.txt&download=1", nil)
	require.Equal(t, `attachment; filename="today.txt"`, a.Header.Get("Content-Disposition"))
	require.Equal(t, "application/octet-stream", a.Header.Get("Content-Type"))
	refused(404, missing, "GET", "contents?file=nope.txt", nil)
	refused(400, "Cannot perform that action: file is a directory.", "GET", "contents?file=notes", nil)
	refused(404, "The requested directory was not found on the server.", "GET", "list-directory?directory=/none", nil)
	w.Want(t, 204, "POST", at+"create-directory", map[string]string{"name": "sub/deep", "path": "/notes"})
	refused(400, "Part of the path being created is not a directory (ENOTDIR).", "POST", "create-directory", map[string]string{"name": "today.txt", "path": "/notes"})
	w.Want(t, 204, "PUT", at+"rename", files("/notes", map[string]string{"from": "today.txt", "to": "sub/moved.txt"}))
	w.Want(t, 204, "POST", at+"write?file=notes/other.txt", "x")
	refused(400, "Cannot move or rename file, destination already exists.", "PUT", "rename", files("/notes", map[string]string{"from": "other.txt", "to": "sub/moved.txt"}))
	w.Want(t, 204, "PUT", at+"rename", files("/", map[string]string{"from": "none", "to": "none2"}))
	refused(422, "No files to move or rename were provided.", "PUT", "rename", files("/"))
	for range 2 {
		w.Want(t, 204, "POST", at+"copy", map[string]string{"location": "/notes/sub/moved.txt"})
	}
	w.Want(t, 204, "POST", at+"chmod", files("/notes/sub", map[string]string{"file": "moved.txt", "mode": "600"}, map[string]string{"file": "none", "mode": "600"}))
	refused(400, "Invalid file mode.", "POST", "chmod", files("/", map[string]string{"file": "game.txt", "mode": "9x"}))
	require.Equal(t, []string{"deep drwxr-xr-x 755 inode/directory", "moved copy 1.txt -rw-r--r-- 644 text/plain; charset=utf-8",
		"moved copy.txt -rw-r--r-- 644 text/plain; charset=utf-8", "moved.txt -rw------- 600 text/plain; charset=utf-8"}, names("/notes/sub"))

	var made struct {
		Name, MIME string
		Size       int64
	}
	w.Want(t, 200, "POST", at+"compress", files("/notes", "sub")).Decode(t, &made)
	require.Regexp(t, `^archive-.*\.tar\.gz$`, made.Name)
	require.Equal(t, "application/gzip", made.MIME)
	require.Positive(t, made.Size)
	archive := made.Name
	for _, want := range []string{"pack.zip", "pack copy.zip"} {
		w.Want(t, 200, "POST", at+"compress", map[string]any{"root": "/notes", "files": []string{"sub", "other.txt"}, "name": "pack", "extension": "zip"}).Decode(t, &made)
		require.Equal(t, want, made.Name)
	}
	w.Want(t, 204, "POST", at+"delete", files("/notes", "sub"))
	w.Want(t, 204, "POST", at+"decompress", map[string]string{"root": "/notes", "file": archive})
	require.Len(t, names("/notes/sub"), 4)
	refused(400, "The archive provided is in a format Wings does not understand.", "POST", "decompress", map[string]string{"root": "/", "file": "game.txt"})
	refused(422, "No files were specified for deletion.", "POST", "delete", files("/"))
	refused(404, missing, "POST", "delete", files("/", "never-there"))
	refused(404, missing, "POST", "delete", files("/", ".")) // not the volume itself

	var found []struct{ Name, Mode string }
	w.Want(t, 200, "GET", at+"search?directory=/&pattern=moved", nil).Decode(t, &found)
	require.Len(t, found, 3)
	require.True(t, slices.ContainsFunc(found, func(f struct{ Name, Mode string }) bool {
		return f.Name == "notes/sub/moved.txt" && f.Mode == "-rw-------"
	}), found)
	refused(400, "Pattern must be at least 3 characters long", "GET", "search?directory=/&pattern=mo", nil)
	refused(403, "This file cannot be modified: present in egg denylist.", "POST", "write?file=secret.txt", "x")
	refused(404, missing, "POST", "write?file=../outside.txt", "x")
	refused(404, missing, "GET", "contents?file=../../../../etc/passwd", nil)
	refused(404, missing, "GET", "contents?file=/notes/../../x", nil)
	w.Want(t, 204, "POST", at+"write?file=fill.bin", strings.Repeat("x", 10<<20))
	refused(400, "There is not enough disk space available to perform that action.", "POST", "write?file=more.bin", strings.Repeat("x", 10<<20))
	noise := make([]byte, 1<<20)
	_, _ = rand.Read(noise)
	for n, err := 0, error(nil); err == nil; n++ { // until there is no space for another one
		volume := w.berth.Container(t, alpha).VolumeID
		_, err = w.api.Files().Upload(t.Context(), volume, fmt.Sprint("noise", n), bytes.NewReader(noise), client.UploadOptions{})
	}
	refused(409, "There is not enough disk space available to perform that action.", "POST", "compress", files("/", "noise0"))
}

// TestPulls downloads a file of a tenant's address.
func TestPulls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	at := "/api/servers/" + alpha + "/files/pull"
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("mod")) }))
	defer web.Close()
	require.Equal(t, `{"downloads":null}`, w.Want(t, 200, "GET", at, nil).Body)
	require.NotEmpty(t, w.Want(t, 400, "POST", at, map[string]any{"url": web.URL + "/x.jar", "root": "/", "foreground": true}).Error(), "a private address")
	require.NotEmpty(t, w.Want(t, 400, "POST", at, map[string]any{"url": "ftp://x/y", "root": "/"}).Error())
	w.Want(t, 204, "DELETE", at+"/none", nil)

	w.stop()
	text, err := os.ReadFile(w.file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(w.file, []byte(strings.Replace(string(text), "api: {", "api: {disable_remote_download: true, ", 1)), 0o600))
	w.run(t)
	require.Equal(t, "This functionality is not currently enabled on this instance.", w.Want(t, 400, "POST", at, map[string]any{"url": "http://x/y"}).Error())
}

// TestAccess: who may call, the forms of refusals, and the headers of every answer.
func TestAccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.Do(t, "GET", "/api/system", nil, "Authorization", "")
	require.Equal(t, 401, a.Status)
	require.Equal(t, "Bearer", a.Header.Get("WWW-Authenticate"))
	require.JSONEq(t, `{"error":"The required authorization heads were not present in the request."}`, a.Body)
	for _, wrong := range []string{"Bearer wrong", "Bearer " + paneltest.TokenID + "." + paneltest.Token, "Bearer " + paneltest.Token + "x"} {
		a = w.Do(t, "GET", "/api/servers/none", nil, "Authorization", wrong)
		require.Equal(t, 403, a.Status, "before it is known whether the server exists")
	}
	require.JSONEq(t, `{"error":"The requested resource does not exist on this instance."}`, w.Want(t, 404, "GET", "/api/servers/none", nil).Body)
	a = w.Want(t, 404, "GET", "/api/nothing", nil)
	require.Equal(t, "404 page not found", a.Body)
	for name, want := range map[string]string{"User-Agent": "Pelican Wings/v1.0.0 (id:" + paneltest.TokenID + ")", "Access-Control-Allow-Origin": w.panel.URL,
		"Access-Control-Allow-Credentials": "true", "Access-Control-Max-Age": "7200"} {
		require.Equal(t, want, a.Header.Get(name), name)
	}
	require.Len(t, a.Header.Get("X-Request-Id"), 36)
	a = w.Do(t, "OPTIONS", "/upload/file", nil, "Authorization", "")
	require.Equal(t, 204, a.Status)
	require.Empty(t, a.Header.Get("User-Agent"))
	require.Equal(t, w.panel.URL, w.Do(t, "GET", "/api/system", nil, "Origin", "http://evil.test").Header.Get("Access-Control-Allow-Origin"))

	at := "/api/servers/" + alpha + "/power"
	require.Equal(t, "The data passed in the request was not in a parsable format. Please try again.", w.Want(t, 400, "POST", at, "").Error())
	require.Contains(t, w.Want(t, 400, "POST", at, "{").Body, "request_id")
	require.Equal(t, 413, w.Do(t, "POST", at, `{"a":"`+strings.Repeat("x", 1<<20)).Status)
	require.Contains(t, w.Want(t, 422, "POST", at, map[string]string{"action": "dance"}).Error(), "not valid")
}

// TestSystem: what pages of a node read, with the keys that they demand.
func TestSystem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keys := func(path string, want ...string) {
		t.Helper()
		var got map[string]any
		w.Want(t, 200, "GET", path, nil).Decode(t, &got)
		for _, key := range want {
			var at any = got
			for _, part := range strings.Split(key, ".") {
				at = at.(map[string]any)[part]
			}
			require.NotNil(t, at, key)
		}
	}
	keys("/api/system", "architecture", "cpu_count", "kernel_version", "os", "version")
	keys("/api/system?v=2", "docker.version", "docker.cgroups.version", "docker.containers.total", "docker.storage.driver", "system.memory_bytes", "system.os")
	keys("/api/system/utilization", "memory_total", "memory_used", "swap_total", "load_average1", "load_average15", "cpu_percent", "disk_total", "disk_used", "disk_details")
	keys("/api/system/ips", "ip_addresses")
	keys("/api/system/docker/disk", "images_size", "build_cache_size")
	require.JSONEq(t, `{"ImagesDeleted":null,"SpaceReclaimed":0}`, w.Want(t, 200, "DELETE", "/api/system/docker/image/prune", nil).Body)
	a := w.Want(t, 200, "GET", "/api/diagnostics", nil)
	require.Contains(t, a.Body, "servers: 1")
	require.NotContains(t, a.Body, paneltest.Token)
	require.NotContains(t, a.Body, w.berth.Token)

	require.JSONEq(t, `{"applied":true}`, w.Want(t, 200, "POST", "/api/update", map[string]any{"api": map[string]any{"upload_limit": 7}}).Body)
	f, err := config.Load(w.file, nil)
	require.NoError(t, err)
	require.Equal(t, int64(7), f.Config.API.UploadLimit)
	require.NotEmpty(t, w.Want(t, 400, "POST", "/api/update", map[string]any{"token": ""}).Error())
}

// TestServersOfTheNode: what the bridge knows of servers after its start.
func TestServersOfTheNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	w.Want(t, 202, "POST", "/api/servers/"+alpha+"/power", map[string]any{"action": "start"})
	w.state(t, "running")
	before := w.berth.Processes(t)
	w.stop()
	w.run(t)
	require.Len(t, w.panel.Calls("POST /servers/reset"), 2, "one at each start")
	var list []struct {
		State         string
		Suspended     *bool `json:"is_suspended"`
		Utilization   map[string]json.RawMessage
		Configuration struct{ UUID string }
	}
	w.Want(t, 200, "GET", "/api/servers", nil).Decode(t, &list)
	require.Len(t, list, 1)
	require.Equal(t, "running", list[0].State)
	require.NotNil(t, list[0].Suspended)
	require.Equal(t, alpha, list[0].Configuration.UUID)
	for _, key := range []string{"memory_bytes", "memory_limit_bytes", "cpu_absolute", "network", "disk_io", "uptime", "state", "disk_bytes"} {
		require.Contains(t, list[0].Utilization, key)
	}
	require.Equal(t, before, w.berth.Processes(t))
	berthtest.Until(t, 3*time.Minute, "statistics", func() bool {
		var one struct {
			Utilization struct {
				Memory int64 `json:"memory_bytes"`
				Uptime int64
			}
		}
		w.Want(t, 200, "GET", "/api/servers/"+alpha, nil).Decode(t, &one)
		return one.Utilization.Memory > 0 && one.Utilization.Uptime >= 1000
	})
}

// TestContentsCut: an answer that ends with its daemon does not look complete.
func TestContentsCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	volume := w.berth.Container(t, alpha).VolumeID
	require.NoError(t, os.WriteFile(filepath.Join(w.berth.Data, "volumes", volume, "large"), make([]byte, 64<<20), 0o644))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.URL+"/api/servers/"+alpha+"/files/contents?file=large", nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+paneltest.Token)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, 200, response.StatusCode)
	w.berth.Kill9(t)
	n, err := io.Copy(io.Discard, response.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%d bytes", n)
}
