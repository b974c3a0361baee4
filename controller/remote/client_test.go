package remote

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// post sends one request to a real server.
func post(t *testing.T, url string) result {
	t.Helper()
	c := newClient(nil, "1.2.3")
	defer c.close()
	return c.post(t.Context(), v1.RemoteConfig{URL: url, Token: secret}, []byte(`{"node":"n","events":[]}`))
}

func TestRequestFormat(t *testing.T) {
	var body []byte
	var got *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
	}))
	defer server.Close()
	require.Equal(t, result{detail: "HTTP 200"}, post(t, server.URL+"/hook?x=1"))
	require.Equal(t, "POST", got.Method)
	require.Equal(t, "/hook?x=1", got.URL.String())
	require.Equal(t, "Bearer "+secret, got.Header.Get("Authorization"))
	require.Equal(t, "application/json", got.Header.Get("Content-Type"))
	require.Equal(t, "berth/1.2.3", got.Header.Get("User-Agent"))
	require.JSONEq(t, `{"node":"n","events":[]}`, string(body))
}

func TestRedirectIsNotFollowed(t *testing.T) {
	var reached atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.RedirectHandler(other.URL, status))
		require.Equal(t, redirected, post(t, server.URL).reason)
		server.Close()
	}
	require.False(t, reached.Load(), "neither the token nor a transition goes elsewhere")
}

func TestEndlessResponseIsCutOff(t *testing.T) {
	var sent atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		piece := make([]byte, 32<<10)
		for n, err := w.Write(piece); err == nil; n, err = w.Write(piece) {
			sent.Add(int64(n))
		}
	}))
	defer server.Close()
	require.Equal(t, accepted, post(t, server.URL).reason)
	server.CloseClientConnections()
	require.Less(t, sent.Load(), int64(64<<20))
}

func TestConnectionErrorIsUnreachable(t *testing.T) {
	server := httptest.NewServer(nil)
	url := server.URL
	server.Close()
	v := post(t, url+"/secret-path")
	require.Equal(t, unreachable, v.reason)
	require.NotContains(t, v.detail, "secret-path")
	require.Equal(t, missing, post(t, "http://[bad").reason)
}

// silent is an http.RoundTripper that never responds.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestMissingResponseIsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(silent{}, "")
		began := time.Now()
		v := c.post(context.Background(), v1.RemoteConfig{URL: "http://panel"}, nil)
		require.Equal(t, timeout, v.reason)
		require.Equal(t, requestTimeout, time.Since(began))
	})
}
