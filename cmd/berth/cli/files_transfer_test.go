package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

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
