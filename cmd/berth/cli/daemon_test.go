package cli

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/client"
)

func TestSilentDaemon(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	c, err := client.New(client.Options{URL: server.URL, Timeout: 20 * time.Millisecond})
	require.NoError(t, err)
	d := &daemon{Client: c}
	require.EqualError(t, d.explain(d.Ready(t.Context())), "the daemon at "+server.URL+" did not answer in time")
}
