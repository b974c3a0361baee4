package cli

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/client"
	v1 "berth/api/v1"
)

func TestSilentDaemon(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	c, err := client.New(client.Options{URL: server.URL, Timeout: 20 * time.Millisecond})
	require.NoError(t, err)
	d := &daemon{Client: c}
	require.EqualError(t, d.explain(d.Ready(t.Context())), "the daemon at "+server.URL+" did not answer in time")
}

// TestStoreErrorsNameRemedy: the API's text is fixed, and names neither the disk nor a remedy.
func TestStoreErrorsNameRemedy(t *testing.T) {
	d := &daemon{}
	for code, remedy := range map[v1.Code]string{
		v1.StoreDiskFull: "the disk of the daemon's storage.data_path is full; free space on it, then try again",
		v1.StoreFailed:   "the daemon cannot write its store; berth doctor names the cause",
	} {
		err := d.explain(&client.Error{Status: 500, Code: code, Message: "Database operation failed"})
		require.EqualError(t, err, "Database operation failed: "+remedy)
		require.Equal(t, exitError, codeOf(err))
	}
}
