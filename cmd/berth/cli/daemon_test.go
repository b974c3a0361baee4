package cli

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
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
		require.EqualError(t, d.explain(err), err.Error(), "a command explains it once more")
	}
}

// TestBrokenConnectionsNameRemedy: TLS at a port without it, the reverse, and a certificate
// that is not trusted have different remedies.
func TestBrokenConnectionsNameRemedy(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes fail
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	restarted := "; the daemon may not have been restarted since server.tls changed"
	for _, c := range []struct{ from, url, remedy string }{
		{"--url", secure.URL, "if this is the daemon, trust its certificate: berth context set <name> --url " + secure.URL + " --ca-file <file>"},
		{"context paris", strings.Replace(plain.URL, "http", "https", 1), "http: server gave HTTP response to HTTPS client; it does not use TLS: its URL is " + plain.URL},
		{"/etc/berth/berth.yaml", strings.Replace(plain.URL, "http", "https", 1), "its URL is " + plain.URL + restarted},
	} {
		d, err := newDaemon(c.url, clientToken, c.from, c.from, nil)
		require.NoError(t, err)
		err = d.explain(d.Ready(t.Context()))
		require.Equal(t, exitUnavailable, codeOf(err))
		require.True(t, strings.HasSuffix(err.Error(), c.remedy), "%v", err)
	}
	d, err := newDaemon("http://paris:8070", clientToken, envURL, envToken, nil)
	require.NoError(t, err)
	require.EqualError(t, d.explain(&url.Error{Err: io.EOF}), "http://paris:8070 (from BERTH_URL): EOF; if it uses TLS, its URL is https://paris:8070")
}
