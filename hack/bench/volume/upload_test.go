package volume_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/bench/table"
)

// bareServer is an HTTP server of net/http that replaces the file "file" in dir by the
// body of each request: a temporary file, fsync, rename. It returns its URL.
func bareServer(b *testing.B, dir string) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := replaceFile(dir, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	b.Cleanup(func() {
		require.NoError(b, s.Close())
		require.ErrorIs(b, <-ended, http.ErrServerClosed)
	})
	return "http://" + ln.Addr().String()
}

func replaceFile(dir string, content io.Reader) error {
	f, err := os.CreateTemp(dir, "tmp")
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Sync(), f.Close(), os.Rename(f.Name(), filepath.Join(dir, "file")))
}

// putBody sends a body by PUT, and waits for the answer.
func putBody(b *testing.B, url string, body io.Reader, size int64) {
	req, err := http.NewRequest(http.MethodPut, url, body)
	require.NoError(b, err)
	req.ContentLength = size
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(b, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(b, errors.Join(err, resp.Body.Close()))
	require.Equal(b, 200, resp.StatusCode)
}

// BenchmarkUpload sends 1 GiB over loopback into a file, with an fsync at its end: by a
// copy of the file without a network, by a bare TCP connection and io.Copy, by a bare
// server of net/http, and by berth.
func BenchmarkUpload(b *testing.B) {
	m, dir := open(b)
	src := filepath.Join(b.TempDir(), "src")
	noise(b, src)
	address := bareListener(b, func(c net.Conn) error {
		err := replaceFile(dir, struct{ io.Reader }{c})
		_, werr := c.Write([]byte("k"))
		return errors.Join(err, werr)
	})
	url, bareURL := serve(b, m), bareServer(b, dir)
	base, peak := resident(b), int64(0)
	took, used := turns(b,
		contender{name: "copy", do: func() {
			withFile(b, src, func(f *os.File) { require.NoError(b, replaceFile(dir, struct{ io.Reader }{f})) })
		}},
		contender{name: "tcp", do: func() { withFile(b, src, func(f *os.File) { sendBare(b, address, f) }) }},
		contender{name: "net-http", do: func() { withFile(b, src, func(f *os.File) { putBody(b, bareURL, f, transfer) }) }},
		contender{name: "berth", do: func() {
			withFile(b, src, func(f *os.File) { peak = max(peak, most(b, func() { putBody(b, url, f, transfer) })) })
		}})
	b.ReportMetric(float64(peak-base)/(1<<20), "MiB-grown")
	for i, floor := range []string{"a copy", "a TCP connection", "net/http"} {
		table.Add(b, table.Row{Measure: "upload of 1 GiB, against " + floor, Unit: "ms", Berth: took[3], Floor: took[i], Goal: table.AtMost(1.25)})
		table.Add(b, table.Row{Measure: "upload of 1 GiB, against " + floor + ", CPU", Unit: "ms", Berth: used[3], Floor: used[i], Goal: table.AtMost(1.25)})
	}
}

func withFile(b *testing.B, path string, do func(*os.File)) {
	f, err := os.Open(path)
	require.NoError(b, err)
	defer f.Close()
	do(f)
}

// sendBare sends a file over a TCP connection and waits for an answer.
func sendBare(b *testing.B, address string, f *os.File) {
	c, err := net.Dial("tcp", address)
	require.NoError(b, err)
	_, err = io.Copy(c, f)
	require.NoError(b, errors.Join(err, c.(*net.TCPConn).CloseWrite()))
	_, err = io.ReadAll(c)
	require.NoError(b, errors.Join(err, c.Close()))
}
