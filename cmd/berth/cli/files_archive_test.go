package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPutExtract sends an archive, of a file or of standard input, and reports what was left out.
func TestPutExtract(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.URL.String()+" "+string(body))
		_, _ = io.WriteString(w, `{"destination":"mods","skipped":[{"path":"a\nb","reason":"special"}],"skipped_total":3}`)
	}))
	t.Cleanup(server.Close)
	env := []string{"BERTH_URL=" + server.URL, "BERTH_TOKEN=" + clientToken}
	local := t.TempDir() + "/pack.zip"
	require.NoError(t, os.WriteFile(local, []byte("a zip"), 0o600))
	out, errOut, err := command(t, env, "files", "put", "--extract", local, "3f2a91c0:mods/")
	require.NoError(t, err)
	require.Equal(t, "extracted "+local+" into 3f2a91c0:mods: 5B; 3 left out\n", out)
	require.Equal(t, "berth: a b: left out (special)\n", errOut)
	_, _, err = command(t, env, "files", "put", "--extract", "-", "3f2a91c0:", "-o", "json")
	require.NoError(t, err)
	require.Equal(t, []string{"PUT /volumes/3f2a91c0/archive?path=mods a zip", "PUT /volumes/3f2a91c0/archive "}, got)
	_, _, err = command(t, env, "files", "put", "--extract", t.TempDir(), "3f2a91c0:")
	require.ErrorContains(t, err, "is a folder: --extract takes an archive")
}

// TestGetFolderToStandardOutput: a folder is a tar, and one that is cut off is an error.
func TestGetFolderToStandardOutput(t *testing.T) {
	cut := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/archive") {
			_, _ = io.WriteString(w, `{"files":[{"name":"world","type":"directory","mode":"0755"}]}`)
			return
		}
		_, _ = io.WriteString(w, r.URL.RawQuery)
		if cut {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(server.Close)
	env := []string{"BERTH_URL=" + server.URL, "BERTH_TOKEN=" + clientToken}
	out, _, err := command(t, env, "files", "get", "3f2a91c0:world", "-")
	require.NoError(t, err)
	require.Equal(t, "format=tar&path=world", out)
	cut = true
	_, _, err = command(t, env, "files", "get", "3f2a91c0:world", "-")
	require.ErrorContains(t, err, "3f2a91c0:world: unexpected EOF")
}
