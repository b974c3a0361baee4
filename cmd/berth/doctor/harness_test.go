package doctor

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/client"
)

// newFakeEngine returns the address of an engine of version 28.5.2, and how often it was
// asked for its description.
func newFakeEngine(t *testing.T) (host string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.51")
		switch {
		case strings.HasSuffix(r.URL.Path, "/version"):
			_, _ = w.Write([]byte(`{"Version":"28.5.2","ApiVersion":"1.51"}`))
		case strings.HasSuffix(r.URL.Path, "/info"):
			asked.Add(1)
			_, _ = w.Write([]byte(`{"Driver":"overlay2"}`))
		}
	}))
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	return "unix://" + socket, asked
}

// newFakeDaemon returns a client of a daemon with prepared responses to paths. Those
// that begin with "!" have the status 503; a path without one is 404.
func newFakeDaemon(t *testing.T, answers map[string]string) *client.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, known := answers[r.URL.RequestURI()]
		if !known && r.URL.Path == "/api/v1/public/ping" {
			text, known = `{"status":"ok","message":"berth is running"}`, true
		}
		switch {
		case !known:
			w.WriteHeader(http.StatusNotFound)
		case strings.HasPrefix(text, "!"):
			w.WriteHeader(http.StatusServiceUnavailable)
			text = text[1:]
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	c, err := client.New(client.Options{URL: server.URL})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}
