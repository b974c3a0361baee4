package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// hasty is a Job whose turn is over after each read, and whose next one begins at the
// third request.
type hasty struct {
	read, asked int
	between     func()
}

func (h *hasty) Progress(int64, int64) { h.read++ }
func (h *hasty) Over() bool            { return h.read%2 == 0 && h.read > 0 }

func (h *hasty) Next(context.Context) (bool, error) {
	if h.asked++; h.asked%3 == 0 {
		h.read++
		h.between()
		return true, nil
	}
	return false, nil
}

// TestTurnsOfADownload: a download whose turns end often has the whole content, in order;
// one that the server cannot continue, or whose file changes meanwhile, fails.
func TestTurnsOfADownload(t *testing.T) {
	text := strings.Repeat("0123456789", 100_000)
	for name, c := range map[string]struct {
		header  http.Header
		changes bool
		want    error
	}{
		"by its ETag":         {header: http.Header{"Etag": {`"v1"`}}},
		"by its time":         {header: http.Header{"Last-Modified": {"Mon, 02 Jan 2006 15:04:05 GMT"}}},
		"without validator":   {header: http.Header{}, want: errNoRange},
		"with a weak ETag":    {header: http.Header{"Etag": {`W/"v1"`}}, want: errNoRange},
		"without ranges":      {header: http.Header{"Etag": {`"v1"`}, "Accept-Ranges": {"none"}}, want: errNoRange},
		"the file is another": {header: http.Header{"Etag": {`"v1"`}}, changes: true, want: errNoRange},
	} {
		t.Run(name, func(t *testing.T) {
			changed := make(chan struct{})
			w := newWeb(t, func(rw http.ResponseWriter, r *http.Request) {
				for key, values := range c.header {
					rw.Header()[key] = values
				}
				select {
				case <-changed:
					rw.Header().Set("ETag", `"v2"`)
				default:
				}
				if c.header.Get("Accept-Ranges") == "none" {
					_, _ = io.WriteString(rw, text)
					return
				}
				modified, _ := http.ParseTime(c.header.Get("Last-Modified"))
				http.ServeContent(rw, r, "", modified, strings.NewReader(text))
			})
			job := &hasty{between: func() {}}
			if c.changes {
				job.between = func() { close(changed) }
			}
			sum := sha256.Sum256([]byte(text))
			var got bytes.Buffer
			err := New(every).Get(t.Context(), w.URL, hex.EncodeToString(sum[:]), job, func(r io.Reader) error {
				_, err := io.CopyBuffer(&got, onlyReader{r}, make([]byte, 100_000))
				return err
			})
			require.Equal(t, c.want, err)
			if c.want == nil {
				require.Equal(t, text, got.String())
				require.Greater(t, w.asked.Load(), int32(3))
			}
		})
	}
}

// onlyReader hides the other methods of a reader.
type onlyReader struct{ io.Reader }
