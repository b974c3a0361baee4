package cli

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

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
