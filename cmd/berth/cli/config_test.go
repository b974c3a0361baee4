package cli

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// runConfig runs `berth config` with these arguments and returns its output.
func runConfig(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, errOut, err := command(t, []string{"HOME=/home/me"}, append([]string{"config"}, args...)...)
	return out + errOut, err
}

func TestConfigInitNeverOverwrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "berth.yaml")
	out, err := runConfig(t, "init", path)
	require.NoError(t, err)
	require.Equal(t, "wrote "+path+"\n", out)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	first, err := os.ReadFile(path)
	require.NoError(t, err)

	_, err = runConfig(t, "init", path)
	require.ErrorContains(t, err, "not overwritten")
	still, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, first, still)

	out, err = runConfig(t, "init", "--force", path, "-o", "json")
	require.NoError(t, err)
	require.JSONEq(t, `{"path":"`+path+`"}`, out)
	kept, err := os.ReadFile(path + ".bak")
	require.NoError(t, err)
	require.Equal(t, first, kept)
	fresh, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotEqual(t, first, fresh, "the token is new")
	names, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, names, 2, "no temporary file is left")
}

func TestConfigCheck(t *testing.T) {
	path := writeFile(t, "server: {port: x}\nlog: {level: loud}\n")
	out, err := runConfig(t, "check", path)
	require.Error(t, err)
	require.Equal(t, "fault: server.port: must be a whole number\n"+
		"fault: authorization.token: is required: `berth config init` writes a file with a fresh one\n"+
		"fault: log.level: must be one of debug, info, warn, error\n"+path+" has 3 faults\n", out)

	broken := writeFile(t, "server: {port: 1")
	out, err = runConfig(t, "check", broken)
	require.Error(t, err)
	require.Contains(t, out, "fault: line 1: ")
	require.Contains(t, out, broken+" has 1 fault\n")

	out, err = runConfig(t, "check", "-o", "json", path)
	require.Error(t, err)
	var got report
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.False(t, got.Valid)
	require.Len(t, got.Faults, 3)

	_, err = runConfig(t, "check", "--config", path+".none")
	require.Error(t, err)

	out, err = runConfig(t, "check", writeFile(t, "authorization: {token: "+clientToken+"}"))
	require.NoError(t, err)
	require.Contains(t, out, "is valid")
	require.NotContains(t, out, clientToken)
}

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
