package cli

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConfigCurl(t *testing.T) {
	path := writeFile(t, "authorization: {token: "+clientToken+"}\n")
	out, _, err := command(t, []string{"BERTH_CONFIG=" + path}, "config", "curl")
	require.NoError(t, err)
	require.Contains(t, out, "header = \"Authorization: Bearer "+clientToken+"\"\n")
	require.Contains(t, out, "header = \"Accept: Application/vnd.berthv1+json\"\n")
}

// TestConfigCurlPinsCertificate runs curl against a daemon with a self-signed
// certificate, and against another one at the same address.
func TestConfigCurlPinsCertificate(t *testing.T) {
	dir := t.TempDir()
	writePair(t, dir, 1)
	pair, err := tls.LoadX509KeyPair(dir+"/cert.pem", dir+"/key.pem")
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	defer server.Close()
	path := writeFile(t, "authorization: {token: "+clientToken+"}\nserver: {tls: {cert: "+dir+"/cert.pem, key: "+dir+"/key.pem}}\n")
	curl := func() (string, error) {
		options, _, err := command(t, []string{"BERTH_CONFIG=" + path}, "config", "curl")
		require.NoError(t, err)
		cmd := exec.CommandContext(t.Context(), "curl", "-K", "-", server.URL)
		cmd.Stdin = strings.NewReader(options)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := curl()
	require.NoError(t, err, out)
	require.Equal(t, "hello", out)
	writePair(t, dir, 2)
	out, err = curl()
	require.Error(t, err)
	require.Contains(t, out, "pinned")
}

func TestConfigShowHidesSecrets(t *testing.T) {
	path := writeFile(t, "authorization: {token: "+clientToken+"}\ndocker: {registries: {r.example: {username: u, password: hidden}}}\n"+
		"server: {allowed_origins: [https://a, https://b]}\n")
	env := []string{"BERTH_CONFIG=" + path, "BERTH_RECONCILE_RESYNC=30s"}
	for _, output := range []string{"table", "json"} {
		out, _, err := command(t, env, "config", "show", "-o", output)
		require.NoError(t, err)
		require.NotContains(t, out, clientToken)
		require.NotContains(t, out, "hidden")
		require.Contains(t, out, "***")
	}
	out, _, err := command(t, env, "config", "show", "reconcile.resync", "server.allowed_origins", "authorization.token", "docker.registries", "server.port")
	require.NoError(t, err)
	require.Equal(t, "30s\nhttps://a,https://b\n***\n***\n8070\n", out)
	out, _, err = command(t, env, "config", "show", "-o", "json", "log.level", "server.port", "authorization.token")
	require.NoError(t, err)
	require.JSONEq(t, `{"log.level": "info", "server.port": 8070, "authorization.token": "***"}`, out)
}
