package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWait(t *testing.T) {
	failed := strings.Replace(oneContainer, `"exit"`, `"failed"`, 1)
	unseen := strings.Replace(oneContainer, `"observed_generation":4`, `"observed_generation":3`, 1)
	f := newFakeAPI(t, map[string]string{"GET /containers/a": "200 " + failed, "GET /containers/b": "200 " + unseen})
	_, _, err := command(t, f.env(), "wait", "a", "running")
	require.ErrorContains(t, err, "a is failed: exit code 137, cannot\tstart")
	_, _, err = command(t, f.env(), "wait", "b", "exit", "--timeout", "50ms")
	require.ErrorContains(t, err, "b is not exit in time: it is exit", "the newest request is not observed yet")
	_, _, err = command(t, f.env(), "wait", "c", "exit")
	require.ErrorContains(t, err, "c: Route not found")
}

// TestWaitTimeoutDuringRequest lets the timeout end while a request is in flight.
func TestWaitTimeoutDuringRequest(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) > 1 {
			<-r.Context().Done()
			return
		}
		_, _ = w.Write([]byte(oneContainer))
	}))
	defer server.Close()
	_, _, err := command(t, []string{"BERTH_URL=" + server.URL, "BERTH_TOKEN=" + clientToken}, "wait", "mc", "running", "--timeout", "500ms")
	require.ErrorContains(t, err, "mc is not running in time: it is exit")
	_, _, err = command(t, []string{"BERTH_URL=" + server.URL, "BERTH_TOKEN=" + clientToken}, "wait", "mc", "running", "--timeout", "50ms")
	require.ErrorContains(t, err, "did not answer in time")
}
