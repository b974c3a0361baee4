package cli

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/cmd/berth/config"
)

func TestUnreadableConfiguration(t *testing.T) {
	err := (&connector{loader: config.NewLoader([]string{"BERTH_CONFIG=/etc/x.yaml"})}).missing(os.ErrPermission)
	require.ErrorContains(t, err, "/etc/x.yaml may not be read by you: use sudo, or set BERTH_URL and BERTH_TOKEN")
}

// TestDaemonURL derives the address from a configuration.
func TestDaemonURL(t *testing.T) {
	for want, c := range map[string]v1.ServerConfig{
		"http://127.0.0.1:8070":  {Host: "0.0.0.0", Port: 8070},
		"http://127.0.0.1:8071":  {Host: "::", Port: 8071},
		"http://[fd00::1]:80":    {Host: "fd00::1", Port: 80},
		"http://node.example:80": {Host: "node.example", Port: 80},
		"https://10.0.0.1:443":   {Host: "10.0.0.1", Port: 443, TLS: v1.TLSConfig{Cert: "a", Key: "b"}},
	} {
		got, err := daemonURL(c)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// TestAddressPrecedence checks which of the addresses of flag, environment and file is used.
func TestAddressPrecedence(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /volumes": `200 {"volumes":[]}`})
	at, err := url.Parse(f.server.URL)
	require.NoError(t, err)
	path := writeFile(t, "authorization: {token: "+clientToken+"}\nserver: {host: 127.0.0.1, port: "+at.Port()+"}\n")
	for _, c := range []struct {
		env  []string
		args []string
	}{
		{[]string{"BERTH_CONFIG=" + path}, nil},
		{[]string{"BERTH_CONFIG=/none"}, []string{"--config", path}},
		{[]string{"BERTH_CONFIG=" + path, "BERTH_SERVER_PORT=1"}, []string{"--url", f.server.URL}},
		{[]string{"BERTH_CONFIG=/none", "BERTH_URL=http://127.0.0.1:1", "BERTH_TOKEN=" + clientToken}, []string{"--url", f.server.URL + "/"}},
		{[]string{"BERTH_CONFIG=" + path, "BERTH_TOKEN=" + clientToken}, nil},
	} {
		_, _, err := command(t, c.env, append([]string{"volumes"}, c.args...)...)
		require.NoError(t, err, "%v %v", c.env, c.args)
	}
}

// TestOwnCertificateIsTrusted calls a daemon with a self-signed certificate at an
// address that is not in the certificate.
func TestOwnCertificateIsTrusted(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"volumes":[]}`)) }))
	defer server.Close()
	dir := t.TempDir()
	leaf := server.Certificate()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cert"), certificate, 0o600))
	l := config.Loaded{Certificate: &tls.Certificate{Certificate: [][]byte{leaf.Raw}, Leaf: leaf}}
	l.Config.Server.TLS.Cert = filepath.Join(dir, "cert")
	list := func(c *tls.Config) error {
		d, err := newDaemon(strings.Replace(server.URL, "127.0.0.1", "localhost", 1), clientToken, "a test", "a test", c)
		require.NoError(t, err)
		_, err = d.Volumes().List(t.Context())
		return err
	}
	require.NoError(t, list(trust(l)))
	require.ErrorContains(t, list(nil), "certificate")
}

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
