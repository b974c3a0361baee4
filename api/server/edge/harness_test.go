package edge

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"berth/api/limit"
	v1 "berth/api/v1"
)

// harness is a Server on a loopback port.
type harness struct {
	t      *testing.T
	server *Server
	addr   string
}

// options returns the options of a server, which logs to log unless that is nil.
func options(log io.Writer) Options {
	o := Options{Settings: v1.Defaults, Registerer: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
		WrongTokens: limit.NewRate(limit.WrongTokens())}
	if log != nil {
		o.Log = slog.New(slog.NewTextHandler(log, nil))
	}
	return o
}

// newHarness serves the routes that add adds.
func newHarness(t *testing.T, log io.Writer, add func(*Server)) *harness {
	t.Helper()
	s := New(options(log))
	add(s)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- s.Listen(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		http.DefaultClient.CloseIdleConnections()
		s.Close()
		require.NoError(t, s.Shutdown(ctx))
		require.NoError(t, <-ended)
	})
	return &harness{t, s, ln.Addr().String()}
}

// post sends a JSON body. It may be called by any goroutine.
func (h *harness) post(path, body string) *http.Response {
	resp, err := http.Post("http://"+h.addr+path, "application/json", strings.NewReader(body))
	if !assert.NoError(h.t, err) {
		return &http.Response{}
	}
	assert.NoError(h.t, resp.Body.Close())
	return resp
}

// lines is a log that a test can read.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
