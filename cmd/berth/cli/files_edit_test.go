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

// TestEdit edits a file with editors that are shell commands.
func TestEdit(t *testing.T) {
	for name, c := range map[string]struct {
		editor, meanwhile string
		want, output, err string
	}{
		"changed":   {`sed -i s/one/two/`, "", "two", "3f2a91c0:a: written\n", ""},
		"unchanged": {`true`, "", "one", "3f2a91c0:a: unchanged\n", ""},
		"failed":    {`sh -c 'echo two > $0; exit 3'`, "", "one", "", "failed: exit status 3"},
		"conflict":  {`sed -i s/one/two/`, "three", "three", "", "3f2a91c0:a has changed meanwhile, and is not overwritten; the edited text is kept in "},
	} {
		t.Run(name, func(t *testing.T) {
			content, reads, mode := "one", 0, ""
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				switch {
				case strings.HasSuffix(r.URL.Path, "/chmod"):
					mode = string(body)
				case r.Method == http.MethodPut:
					content = string(body)
				case strings.HasSuffix(r.URL.Path, "/content"):
					if reads++; reads == 2 && c.meanwhile != "" {
						content = c.meanwhile
					}
					w.Header().Set("ETag", fmt.Sprintf("%q", content))
					_, _ = io.WriteString(w, content)
					return
				case strings.HasSuffix(r.URL.Path, "/files"):
					_, _ = io.WriteString(w, `{"files":[{"name":"a","type":"file","mode":"0755"}]}`)
					return
				}
				_, _ = io.WriteString(w, "{}")
			}))
			defer server.Close()
			t.Setenv("TMPDIR", t.TempDir())
			out, _, err := command(t, []string{"BERTH_URL=" + server.URL, "BERTH_TOKEN=" + clientToken, "EDITOR=" + c.editor}, "files", "edit", "3f2a91c0:a")
			kept, globErr := filepath.Glob(os.Getenv("TMPDIR") + "/*/a")
			require.NoError(t, globErr)
			require.Equal(t, c.output, out)
			require.Equal(t, c.want, content)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
			}
			if name == "conflict" {
				require.Equal(t, exitConflict, ExitCode(err))
				require.Len(t, kept, 1)
			} else {
				require.Empty(t, kept)
			}
			require.Equal(t, name == "changed", mode == `{"mode":"0755","path":"a"}`, mode)
		})
	}
}
