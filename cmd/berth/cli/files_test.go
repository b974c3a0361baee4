package cli

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestFilesCommands(t *testing.T) {
	const list = `200 {"files":[{"name":"world","type":"directory","mode":"0755"},{"name":"a.txt","type":"file","size":2048,"mode":"0644"},` +
		`{"name":"l","type":"file","mode":"0777","symlink":true}]}`
	const container = "GET /containers/mc"
	mc := "200 " + oneContainer // its volume is v
	for line, x := range map[string]exchange{
		"files ls 3f2a91c0:":       {map[string]string{"GET /volumes/3f2a91c0/files": list}, "", "world/ 0644 2KiB"},
		"files ls mc:/world/":      {map[string]string{container: mc, "GET /volumes/v/files?path=world": list}, container + "\nGET /volumes/v/files?path=world", "l@"},
		"files rm mc:a.txt":        {map[string]string{container: mc, "GET /volumes/v/files": list, "DELETE /volumes/v/files?path=a.txt": "200 {}"}, container + "\nGET /volumes/v/files\nDELETE /volumes/v/files?path=a.txt", "mc:a.txt: deleted"},
		"files rm -r 3f2a91c0:w/x": {map[string]string{"DELETE /volumes/3f2a91c0/files?path=w%2Fx": "200 {}"}, "", "deleted"},
	} {
		t.Run(line, func(t *testing.T) { x.check(t, line) })
	}
}

func TestFilesRefusals(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /containers/mc": "200 " + oneContainer, "GET /volumes/3f2a91c0/files": `200 {"files":[{"name":"world","type":"directory"}]}`})
	for args, want := range map[string]string{
		"ls mc":                         `"mc" must be <id>:<path>`,
		"ls :x":                         `":x" must be <id>:<path>`,
		"cat mc:a/../b":                 "mc:a/../b: Invalid path: path traversal detected",
		"rm mc:":                        "mc: names the whole volume",
		"rm -r mc:./":                   "mc:./ names the whole volume",
		"rm 3f2a91c0:world":             "is a folder: -r deletes it",
		"rm 3f2a91c0:nothing":           "3f2a91c0:nothing: Path not found: nothing",
		"put - 3f2a91c0:w/":             "name the file that standard input is written to",
		"put /does/not/exist 3f2a91c0:": "no such file",
		"get nope:world":                "nope: Route not found",
	} {
		_, _, err := command(t, f.env(), append([]string{"files"}, strings.Fields(args)...)...)
		require.ErrorContains(t, err, want)
	}
}

// TestFileNameOfTwoLines: a tenant's file cannot look like another one to a script.
func TestFileNameOfTwoLines(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /volumes/3f2a91c0/files": `200 {"files":[{"name":"a\n3f2a91c0:world","type":"file"},{"name":"b","type":"file"}]}`})
	out, errOut, err := command(t, f.env(), "files", "ls", "3f2a91c0:", "-o", "name")
	require.NoError(t, err)
	require.Equal(t, "3f2a91c0:b\n", out)
	require.Equal(t, `berth: "3f2a91c0:a\n3f2a91c0:world" is left out: it is not one line`+"\n", errOut)
}

// newFilesAPI returns the environment of a daemon that lists folders and serves content
// with these functions.
func newFilesAPI(t *testing.T, lists map[string]string, content http.HandlerFunc) []string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Query().Get("path")
		if strings.HasSuffix(r.URL.Path, "/content") {
			content(w, r)
			return
		}
		if _, known := lists[path]; !known {
			http.Error(w, `{"error":"Path not found"}`, http.StatusNotFound)
			return
		}
		_, _ = fmt.Fprintf(w, `{"files":[%s]}`, lists[path])
	}))
	t.Cleanup(server.Close)
	return []string{"BERTH_URL=" + server.URL, "BERTH_TOKEN=" + clientToken}
}

const oneFile = `{"name":"a","type":"file","size":10,"mode":"0750"}`

// below returns the paths below a directory that are not directories.
func below(t *testing.T, dir string) (list []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			list = append(list, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	}))
	return list
}

// TestGetFile keeps the permission bits of a file.
func TestGetFile(t *testing.T) {
	env := newFilesAPI(t, map[string]string{"": oneFile}, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "0123456789") })
	dir := t.TempDir()
	out, _, err := command(t, env, "files", "get", "3f2a91c0:a", dir)
	require.NoError(t, err)
	require.Equal(t, "copied 3f2a91c0:a to "+dir+"/a: 1 file, 10B\n", out)
	got, err := os.ReadFile(dir + "/a")
	require.NoError(t, err)
	require.Equal(t, "0123456789", string(got))
	info, err := os.Stat(dir + "/a")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o750), info.Mode())
}

// TestGetFailureLeavesNothing cuts off the response.
func TestGetFailureLeavesNothing(t *testing.T) {
	env := newFilesAPI(t, map[string]string{"": oneFile}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "012")
	})
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/a", []byte("before"), 0o600))
	_, _, err := command(t, env, "files", "get", "3f2a91c0:a", dir)
	require.ErrorContains(t, err, "unexpected EOF")
	require.Equal(t, []string{"a"}, below(t, dir))
	got, err := os.ReadFile(dir + "/a")
	require.NoError(t, err)
	require.Equal(t, "before", string(got))
}

// TestGetStaysInItsFolder receives hostile names, and finds hostile links in the target.
func TestGetStaysInItsFolder(t *testing.T) {
	names := []string{"../escaped", "/tmp/escaped", "..", ".", "", `..\\escaped`, "a/../../escaped"}
	var entries []string
	for _, name := range names {
		entries = append(entries, fmt.Sprintf(`{"name":"%s","type":"file","mode":"0644"}`, name))
	}
	entries = append(entries, oneFile, `{"name":"sub","type":"directory"}`, `{"name":"link","type":"file","symlink":true}`)
	env := newFilesAPI(t, map[string]string{"": strings.Join(entries, ","), "sub": `{"name":"b","type":"file","mode":"bad"}`},
		func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "0123456789") })
	dir, outside := t.TempDir(), t.TempDir()
	out, errOut, err := command(t, env, "files", "get", "3f2a91c0:", dir+"/whole")
	require.EqualError(t, err, fmt.Sprintf("not everything was copied: %d failed", len(names)))
	require.Contains(t, errOut, `"../escaped" in 3f2a91c0:: the name is not that of a file`)
	require.Contains(t, out, "2 files, 20B; 1 link left out")
	require.Equal(t, []string{"whole/a", "whole/sub/b"}, below(t, dir))

	require.NoError(t, os.RemoveAll(dir+"/whole/sub"))
	require.NoError(t, os.Symlink(outside, dir+"/whole/sub"))
	require.NoError(t, os.Remove(dir+"/whole/a"))
	require.NoError(t, os.Symlink(outside+"/a", dir+"/whole/a"))
	_, _, err = command(t, env, "files", "get", "3f2a91c0:", dir+"/whole")
	require.Error(t, err)
	require.Empty(t, below(t, outside))
	info, err := os.Lstat(dir + "/whole/a")
	require.NoError(t, err)
	require.True(t, info.Mode().IsRegular(), "the link is replaced, not followed")
}

func TestGetToOutput(t *testing.T) {
	env := newFilesAPI(t, map[string]string{"": oneFile}, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte{0, 1, 0xff}) })
	for _, args := range []string{"get 3f2a91c0:a -", "cat 3f2a91c0:a", "cat 3f2a91c0:a -o json"} {
		out, _, err := command(t, env, append([]string{"files"}, strings.Fields(args)...)...)
		require.NoError(t, err)
		require.Equal(t, "\x00\x01\xff", out, args)
	}
}

// TestPutFolder copies a folder with everything that a folder can contain.
func TestPutFolder(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, fmt.Sprintf("%s %s %s", r.Method, strings.TrimPrefix(r.URL.RequestURI(), "/volumes/3f2a91c0/"), body))
		if strings.HasSuffix(r.URL.RequestURI(), "refused") {
			http.Error(w, `{"error":"Invalid path: path traversal detected"}`, http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	dir := t.TempDir() + "/src"
	require.NoError(t, os.MkdirAll(dir+"/empty", 0o755))
	for name, mode := range map[string]os.FileMode{"a": 0o600, "run": 0o700, "refused": 0o600} {
		require.NoError(t, os.WriteFile(dir+"/"+name, []byte(name), mode))
	}
	require.NoError(t, os.Symlink("/etc/passwd", dir+"/link"))
	require.NoError(t, os.Symlink("/etc", dir+"/folder"))
	require.NoError(t, unix.Mkfifo(dir+"/pipe", 0o600))
	out, errOut, err := command(t, []string{"BERTH_URL=" + server.URL, "BERTH_TOKEN=" + clientToken}, "files", "put", dir, "3f2a91c0:w/")
	require.EqualError(t, err, "not everything was copied: 2 failed")
	require.Contains(t, out, "2 files, 11B; 2 links left out") // 7 bytes of the refused file were sent
	require.Contains(t, errOut, "pipe: it is not a regular file")
	slices.Sort(got)
	require.Equal(t, []string{
		`POST chmod {"mode":"0755","path":"w/src/run"}`, `POST folders {"path":"w/src"}`, `POST folders {"path":"w/src/empty"}`,
		"PUT files/content?path=w%2Fsrc%2Fa a", "PUT files/content?path=w%2Fsrc%2Frefused refused", "PUT files/content?path=w%2Fsrc%2Frun run",
	}, got)
}

// TestPutInput streams standard input, and follows a link that the user names.
func TestPutInput(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, fmt.Sprintf("%d %s %s", r.ContentLength, r.URL.Query().Get("path"), body))
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	env := []string{"BERTH_URL=" + server.URL, "BERTH_TOKEN=" + clientToken}
	root := NewRoot(Options{Environ: env})
	root.SetArgs([]string{"files", "put", "-", "3f2a91c0:x"})
	root.SetIn(strings.NewReader("hello"))
	root.SetOut(new(bytes.Buffer))
	require.NoError(t, root.ExecuteContext(t.Context()))
	target := writeFile(t, "target")
	link := t.TempDir() + "/link"
	require.NoError(t, os.Symlink(target, link))
	_, _, err := command(t, env, "files", "put", link, "3f2a91c0:")
	require.NoError(t, err)
	require.Equal(t, []string{"-1 x hello", "6 link target"}, got)
}

// TestTransferWaitsForPermits answers each second request of a transfer with 429.
func TestTransferWaitsForPermits(t *testing.T) {
	requests, content := 0, map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if requests++; requests%2 == 1 {
			http.Error(w, `{"error":"too many operations"}`, http.StatusTooManyRequests)
			return
		}
		content[r.Method+" "+r.URL.Path+" "+r.URL.Query().Get("path")] += string(body)
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	dir := t.TempDir() + "/src"
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(dir+"/a", []byte("hello"), 0o600))
	_, _, err := command(t, []string{"BERTH_URL=" + server.URL, "BERTH_TOKEN=" + clientToken}, "files", "put", dir, "3f2a91c0:")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"POST /volumes/3f2a91c0/folders ": `{"path":"src"}`, "PUT /volumes/3f2a91c0/files/content src/a": "hello"}, content)
	require.Equal(t, 4, requests)
}

func TestCount(t *testing.T) {
	require.Equal(t, []string{"0 files", "1 file", "2 files"}, []string{count(0, "file"), count(1, "file"), count(2, "file")})
}
