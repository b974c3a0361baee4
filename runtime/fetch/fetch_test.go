package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// web is a server whose page redirects to /, and counts requests.
type web struct {
	*httptest.Server
	asked atomic.Int32
}

func newWeb(t *testing.T, h http.HandlerFunc) *web {
	t.Helper()
	w := &web{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.asked.Add(1)
		h(rw, r)
	}))
	t.Cleanup(w.Close)
	return w
}

func text(content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, content) }
}

func get(t *testing.T, c *Client, url, checksum string) (string, error) {
	t.Helper()
	var into bytes.Buffer
	err := c.Get(t.Context(), url, checksum, func(int64, int64) {}, func(r io.Reader) error {
		_, err := io.Copy(&into, r)
		return err
	})
	return into.String(), err
}

func every(netip.Addr) bool { return true }

func TestGet(t *testing.T) {
	w := newWeb(t, text("hello"))
	sum := sha256.Sum256([]byte("hello"))
	got, err := get(t, New(every), w.URL, hex.EncodeToString(sum[:]))
	require.NoError(t, err)
	require.Equal(t, "hello", got)
	_, err = get(t, New(every), w.URL, strings.Repeat("0", 64))
	require.ErrorIs(t, err, ErrChecksum)
	var bytes, total int64
	require.NoError(t, New(every).Get(t.Context(), w.URL, "", func(b, n int64) { bytes, total = b, n }, func(r io.Reader) error { _, err := io.Copy(io.Discard, r); return err }))
	require.Equal(t, []int64{5, 5}, []int64{bytes, total})
	full := errors.New("full")
	require.ErrorIs(t, New(every).Get(t.Context(), w.URL, "", func(int64, int64) {}, func(io.Reader) error { return full }), full)
}

// TestAddressIsCheckedAtEachConnection: the literal address, a name, a redirect to an
// address or a name, and a redirect chain; the server that is not allowed gets nothing.
func TestAddressIsCheckedAtEachConnection(t *testing.T) {
	secret := newWeb(t, text("secret"))
	port := netip.MustParseAddrPort(strings.TrimPrefix(secret.URL, "http://")).Port()
	ln, err := net.Listen("tcp", "127.0.0.2:0")
	require.NoError(t, err)
	open := &httptest.Server{Listener: ln, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	})}}
	open.Start()
	t.Cleanup(open.Close)
	c := New(func(a netip.Addr) bool { return a == netip.MustParseAddr("127.0.0.2") })
	for _, to := range []string{secret.URL, fmt.Sprintf("http://localhost:%d/", port), fmt.Sprintf("http://[::ffff:127.0.0.1]:%d/", port), fmt.Sprintf("http://2130706433:%d/", port), fmt.Sprintf("http://0x7f.1:%d/", port)} {
		for _, url := range []string{to, open.URL + "/?to=" + to, open.URL + "/?to=" + open.URL + "/%3Fto=" + to} {
			got, err := get(t, c, url, "")
			require.Error(t, err, url)
			require.Empty(t, got, url)
			require.NotContains(t, err.Error(), "127.0.0.1", "the text names no address")
		}
	}
	require.Zero(t, secret.asked.Load(), "not even a connection")
	for _, to := range []string{"ftp://127.0.0.2/", "file:///etc/passwd", "gopher://127.0.0.2:1/"} {
		_, err := get(t, c, open.URL+"/?to="+to, "")
		require.Error(t, err, to)
	}
	_, err = get(t, c, open.URL+"/?to=/?to=/", "")
	require.Error(t, err, "an endless redirect")
}

func TestProxyIsIgnored(t *testing.T) {
	proxy := newWeb(t, text("from the proxy"))
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	_, err := get(t, New(func(netip.Addr) bool { return false }), "http://example.invalid/", "")
	require.Error(t, err)
	require.Zero(t, proxy.asked.Load())
}

func TestBadAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"not found": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, "the server answered 404"},
		"partial":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(206) }, "the server answered 206"},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "abc")
		}, "before the end of the content"},
		"huge headers": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", headerBytes*2)) }, "not valid"},
	} {
		_, err := get(t, New(every), newWeb(t, c.handler).URL, "")
		require.ErrorContains(t, err, c.want, name)
	}
	_, err := get(t, New(every), "http://127.0.0.1:1/", "")
	require.ErrorContains(t, err, "cannot be reached")
}

func TestStalledServer(t *testing.T) {
	hang := make(chan struct{})
	w := newWeb(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "some")
		w.(http.Flusher).Flush()
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(hang) })
	c := New(every)
	c.stall = 50 * time.Millisecond
	_, err := get(t, c, w.URL, "")
	require.ErrorIs(t, err, errStalled)

	ctx, cancel := context.WithCancel(t.Context())
	c.stall = time.Hour
	err = c.Get(ctx, w.URL, "", func(bytes, _ int64) {
		if bytes > 0 {
			cancel()
		}
	}, func(r io.Reader) error { _, err := io.Copy(io.Discard, r); return err })
	require.ErrorIs(t, err, context.Canceled)
}

// drip is a server that sends count pieces of size bytes, one after each wait. The first
// pieces, burst, come at once.
type drip struct {
	count, size int
	wait        time.Duration
	burst       int
}

func (d *drip) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(d), ContentLength: int64(d.count * d.size)}, nil
}

func (d *drip) Read(p []byte) (int, error) {
	if d.count == 0 {
		return 0, io.EOF
	}
	if d.count--; d.burst == 0 {
		time.Sleep(d.wait)
	}
	d.burst = max(0, d.burst-1)
	return min(d.size, len(p)), nil
}

// TestLeastRate: a server below the least rate is cut off after a window, and one above
// it is not; a slow disk is not held against it.
func TestLeastRate(t *testing.T) {
	for _, c := range []struct {
		drip
		disk time.Duration // that each piece takes
		want error
	}{
		{drip{100_000, 1, 20 * time.Second, 0}, 0, errSlow},
		{drip{100_000, leastRate - 1, time.Second, 0}, 0, errSlow},
		{drip{100_000, leastRate / 2, time.Second, 200}, 0, errSlow},
		{drip{1000, leastRate, time.Second, 0}, 0, nil},
		{drip{1000, leastRate / 2, 100 * time.Millisecond, 0}, 25 * time.Second, nil},
		{drip{1, 1, 29 * time.Second, 0}, 0, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := New(every)
			client.http.Transport = &c.drip
			began := time.Now()
			err := client.Get(t.Context(), "http://mods.example/", "", func(int64, int64) {}, func(r io.Reader) error {
				for piece := make([]byte, leastRate); ; time.Sleep(c.disk) {
					if _, err := r.Read(piece); err != nil {
						return ignoreEnd(err)
					}
				}
			})
			require.Equal(t, c.want, err)
			if err != nil {
				require.LessOrEqual(t, time.Since(began), 2*paceWindow)
			}
		})
	}
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
