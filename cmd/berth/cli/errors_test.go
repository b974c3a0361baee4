package cli

import (
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/cmd/berth/config"
)

// TestErrorsNameRemedy runs commands that cannot succeed.
func TestErrorsNameRemedy(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /readyz": "200 pong", "GET /containers": "200 pong", "GET /volumes": "500 <html>",
		"POST /network/ports/bulk-delete": `200 {"deleted_count":1,"skipped":[{"ip":"::","port":2,"protocol":"tcp","container":"mc"}]}`})
	own := writeFile(t, "authorization: {token: "+clientToken+"}\nserver: {port: 1}\n")
	bad := writeFile(t, "authorization: {token: "+clientToken+"}\nserver: {prot: 1}\n")
	secret := writeFile(t, "authorization: {token: "+clientToken+"}\n")
	for name, c := range map[string]struct {
		env  []string
		args string
		want string
	}{
		"no configuration":  {[]string{"BERTH_CONFIG=/does/not/exist.yaml"}, "status", "there is no configuration at /does/not/exist.yaml: start the daemon (make run)"},
		"bad configuration": {[]string{"BERTH_CONFIG=" + bad}, "status", bad + ": server.prot:"},
		"no daemon":         {[]string{"BERTH_CONFIG=" + own}, "status", "no daemon answers at http://127.0.0.1:1 (from " + own + ")"},
		"no such address":   {[]string{"BERTH_CONFIG=" + own}, "status --url http://127.0.0.1:2", "no daemon answers at http://127.0.0.1:2 (from --url)"},
		"not of berth":      {f.env(), "containers", "is not a berth daemon"},
		"no text":           {f.env(), "volumes", "500 Internal Server Error"},
		"wrong token":       {append(f.env(), "BERTH_TOKEN=berth_x"), "containers", "the token came from BERTH_TOKEN"},
		"not found":         {f.env(), "start nope", "start nope: Route not found"},
		"another host":      {[]string{"BERTH_CONFIG=" + secret}, "status --url http://192.0.2.1", "is not sent to another host: set BERTH_TOKEN"},
		"no address":        {f.env(), "status --url 127.0.0.1:8070", `"127.0.0.1:8070" is not a URL such as`},
		"any free port":     {[]string{"BERTH_CONFIG=" + secret, "BERTH_SERVER_PORT=0"}, "status", "name it with --url"},
		"no TLS there":      {append(f.env(), "BERTH_URL="+strings.Replace(f.server.URL, "http", "https", 1)), "status", "check the address, and whether it is http or https"},
		"arguments":         {f.env(), "start", "usage: berth start <id>..."},
		"a misspelt token":  {f.env(), "token revoek x", `unknown command "revoek" for "berth token"`},
		"a misspelt config": {f.env(), "config chekc", `unknown command "chekc" for "berth config"`},
		"fewer than none":   {f.env(), "events -n -4", "must not be negative"},
		"before the first":  {f.env(), "events --since -5", "must not be negative"},
		"show's file":       {[]string{"BERTH_CONFIG=" + bad}, "config show", bad + ": server.prot:"},
		"ports that stay":   {f.env(), "ports delete :: 1-2", "containers use 1 of these ports, which were not deleted: the first is 2/tcp, used by mc"},
		"no ports":          {f.env(), "ports delete :: 2-1", "ports: must be ports and ranges"},
		"output":            {f.env(), "status -o yaml", "-o must be text or json"},
		"passing state":     {f.env(), "wait mc starting", `cannot wait for "starting": containers pass through it`},
		"a lost file":       {f.env(), "apply -f /does/not/exist", "no such file"},
		"a bad size":        {f.env(), "volumes create --size-limit many", "--size-limit"},
		"unknown key":       {[]string{"BERTH_CONFIG=" + secret}, "config show server.prot", "is not a key of the configuration"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, err := command(t, c.env, strings.Fields(c.args)...)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, out+errOut+err.Error(), clientToken)
		})
	}
}

func TestVerbGoesOnAfterUnknownContainer(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"POST /containers/mc/kill": `200 {"message":"done"}`, "POST /containers/sick/kill": `500 {"error":"Internal server error"}`})
	out, _, err := command(t, f.env(), "kill", "nope", "mc", "neither", "sick", "mc")
	require.EqualError(t, err, "kill nope: Route not found\nkill neither: Route not found\nkill sick: Internal server error")
	require.Equal(t, "mc: done\n", out)
}

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

func TestStatusOfUnreadyDaemon(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /readyz": `503 {"error":"Not ready: engine: does not answer"}`, "GET /containers": `200 {"containers":[]}`})
	out, _, err := command(t, f.env(), "status")
	require.ErrorIs(t, err, ErrReported)
	require.Contains(t, out, "Not ready: engine: does not answer\nThere are no containers.")
}

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

func TestSilentDaemon(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	c, err := client.New(client.Options{URL: server.URL, Timeout: 20 * time.Millisecond})
	require.NoError(t, err)
	d := &daemon{Client: c}
	require.EqualError(t, d.explain(d.Ready(t.Context())), "the daemon at "+server.URL+" did not answer in time")
}
