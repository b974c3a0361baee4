package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
	for _, args := range []string{"get 3f2a91c0:a -", "cat 3f2a91c0:a", "cat --raw 3f2a91c0:a -o json"} {
		out, _, err := command(t, env, append([]string{"files"}, strings.Fields(args)...)...)
		require.NoError(t, err)
		require.Equal(t, "\x00\x01\xff", out, args)
	}
}
