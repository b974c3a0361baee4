package cli

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// setContext runs `berth context set` with a token on standard input.
func setContext(t *testing.T, env []string, token string, args ...string) error {
	t.Helper()
	root := NewRoot(Options{Environ: env})
	root.SetArgs(append([]string{"context", "set", "--token-file", "-"}, args...))
	root.SetIn(strings.NewReader(token + "\n"))
	root.SetOut(new(bytes.Buffer))
	return root.ExecuteContext(t.Context())
}

func TestContextCommands(t *testing.T) {
	env := []string{"XDG_CONFIG_HOME=" + t.TempDir(), "HOME=/nonexistent"}
	run := func(line string) string {
		t.Helper()
		out, errOut, err := command(t, env, append([]string{"context"}, strings.Fields(line)...)...)
		require.NoError(t, err, line)
		require.NotContains(t, out+errOut, clientToken)
		return strings.Join(strings.Fields(out), " ")
	}
	require.Equal(t, "CURRENT CONTEXT URL TOKEN CA", run("list"))
	require.NoError(t, setContext(t, env, clientToken, "paris", "--url", "https://paris:8070/"))
	require.Equal(t, "rome: set", run("set rome --url http://rome"))
	for url, want := range map[string]string{"http://rome": "berth: the URL is not https: tokens travel in clear\n", "http://127.0.0.1": "", "https://rome": ""} {
		_, errOut, err := command(t, env, "context", "set", "rome", "--url", url)
		require.NoError(t, err)
		require.Equal(t, want, errOut)
	}
	run("set rome --url http://rome")
	require.Equal(t, "CURRENT CONTEXT URL TOKEN CA * paris https://paris:8070 yes - - rome http://rome - -", run("list"))
	require.Equal(t, "paris rome", run("list -o name"))
	require.JSONEq(t, `{"contexts":[{"name":"paris","current":true,"url":"https://paris:8070","token":true,"ca":false},
		{"name":"rome","current":false,"url":"http://rome","token":false,"ca":false}]}`, run("list -o json"))
	require.Equal(t, "rome is the current context", run("use rome"))
	require.Equal(t, "paris: set", run("set paris --url https://lyon"))
	require.Contains(t, run("list"), "paris https://lyon yes", "the token stays")
	require.Equal(t, "rome: removed", run("rm rome"))
	require.Equal(t, "CURRENT CONTEXT URL TOKEN CA - paris https://lyon yes -", run("list"))
	run("use paris")
	run("use --none")
	require.NotContains(t, run("list"), "*")
	require.Equal(t, "paris\n:4\n", shellComplete(t, env, "context use "))
	require.Equal(t, "paris\n:4\n", shellComplete(t, env, "status --context "))
}

func TestContextErrors(t *testing.T) {
	env := []string{"XDG_CONFIG_HOME=" + t.TempDir(), "BERTH_CONFIG=/does/not/exist"}
	require.NoError(t, setContext(t, env, clientToken, "paris", "--url", "http://127.0.0.1:1"))
	require.ErrorContains(t, setContext(t, env, "two\nlines", "x", "--url", "http://a"), "must contain one token")
	for line, want := range map[string]string{
		"context use nowhere":                     `there is no context "nowhere"`,
		"context rm paris nowhere":                `there is no context "nowhere"`,
		"context use":                             "name a context, or give --none",
		"context use paris --none":                "name a context, or give --none",
		"context set new":                         "new is a new context: name its daemon with --url",
		"context set ../new --url http://a":       "cannot name a context",
		"context set new --url a":                 "is not a URL",
		"context set new --ca-file /dev/null":     "contains no certificate",
		"context set new --token-file /not/there": "no such file",
		"status --context nowhere":                `there is no context "nowhere"`,
		"status --context paris --url http://a":   "give it without --url and --config",
		"status --context paris --config /a":      "give it without --url and --config",
		"status --context paris":                  "no daemon answers at http://127.0.0.1:1 (from context paris)",
	} {
		out, errOut, err := command(t, env, strings.Fields(line)...)
		require.ErrorContains(t, err, want, line)
		require.NotContains(t, out+errOut+err.Error(), clientToken)
	}
}

// TestContextPrecedence has three daemons: each accepts its own token, and answers with
// its own volume.
func TestContextPrecedence(t *testing.T) {
	tokens := map[string]string{"current": clientToken + "a", "other": clientToken + "b", "host": clientToken}
	urls := map[string]string{}
	for name, token := range tokens {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if given := r.Header.Get("Authorization"); given != "Bearer "+token && given != "Bearer any" {
				http.Error(w, `{"error":"Missing or invalid authorization token"}`, http.StatusUnauthorized)
				return
			}
			_, _ = w.Write([]byte(`{"volumes":[{"volume_id":"` + name + `"}]}`))
		}))
		defer server.Close()
		urls[name] = server.URL
	}
	home := "XDG_CONFIG_HOME=" + t.TempDir()
	for _, name := range []string{"current", "other"} {
		require.NoError(t, setContext(t, []string{home}, tokens[name], name, "--url", urls[name]))
	}
	port := urls["host"][strings.LastIndex(urls["host"], ":")+1:]
	file := writeFile(t, "authorization: {token: "+clientToken+"}\nserver: {host: 127.0.0.1, port: "+port+"}\n")
	for _, c := range []struct {
		env  []string
		args string
		want string
	}{
		{nil, "", "current"},
		{nil, "--context other", "other"},
		{[]string{"BERTH_CONTEXT=other"}, "", "other"},
		{[]string{"BERTH_CONTEXT=other"}, "--context current", "current"},
		{[]string{"BERTH_TOKEN=any"}, "", "current"},
		{[]string{"BERTH_TOKEN=wrong"}, "--context current", "current"},
		{[]string{"BERTH_CONFIG=" + file}, "", "host"},
		{[]string{"BERTH_CONFIG=" + file, "BERTH_CONTEXT=other"}, "", "other"},
		{[]string{"BERTH_CONTEXT=other"}, "--config " + file, "host"},
		{[]string{"BERTH_CONTEXT=other", "BERTH_URL=" + urls["host"], "BERTH_TOKEN=any"}, "", "host"},
		{[]string{"BERTH_URL=" + urls["host"]}, "--context other", "other"},
		{[]string{"BERTH_TOKEN=any"}, "--url " + urls["other"], "other"},
	} {
		out, _, err := command(t, append(c.env, home), strings.Fields("volumes -o name "+c.args)...)
		require.NoError(t, err, "%v %s", c.env, c.args)
		require.Equal(t, c.want+"\n", out, "%v %s", c.env, c.args)
	}
	_, _, err := command(t, []string{home}, "config", "curl", "--config", "/does/not/exist")
	require.Error(t, err, "the token of a context is never printed")
	_, _, err = command(t, []string{home, "BERTH_TOKEN=wrong"}, "volumes")
	require.ErrorContains(t, err, "the token came from BERTH_TOKEN")
	require.NoError(t, setContext(t, []string{home}, "wrong", "other"))
	_, _, err = command(t, []string{home}, "volumes", "--context", "other")
	require.ErrorContains(t, err, "the token came from context other: replace it with berth context set other --token-file")
	require.Equal(t, exitDenied, ExitCode(err))
}

// TestContextTrustsItsCertificate calls a daemon with a self-signed certificate.
func TestContextTrustsItsCertificate(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"volumes":[]}`)) }))
	defer server.Close()
	ca := t.TempDir() + "/ca.pem"
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	env := []string{"XDG_CONFIG_HOME=" + t.TempDir()}
	require.NoError(t, setContext(t, env, clientToken, "paris", "--url", server.URL))
	_, _, err := command(t, env, "volumes")
	require.ErrorContains(t, err, "certificate")
	require.NoError(t, setContext(t, env, clientToken, "paris", "--ca-file", ca))
	_, _, err = command(t, env, "volumes")
	require.NoError(t, err)
}

// TestRemoveUnknownContext names the known contexts, and creates no directory.
func TestRemoveUnknownContext(t *testing.T) {
	home := t.TempDir()
	env := []string{"HOME=" + home}
	_, _, err := command(t, env, "context", "rm", "nope")
	require.EqualError(t, err, "there is no context \"nope\": there are none; `berth context set` creates one")
	require.Equal(t, exitNotFound, ExitCode(err))
	require.NoDirExists(t, home+"/.config")
	require.NoError(t, setContext(t, env, clientToken, "rome", "--url", "https://rome"))
	require.NoError(t, setContext(t, env, clientToken, "paris", "--url", "https://paris"))
	_, _, err = command(t, env, "context", "rm", "nope")
	require.EqualError(t, err, `there is no context "nope": the contexts are paris, rome`)
	require.Equal(t, exitNotFound, ExitCode(err))
}

func TestContextsPath(t *testing.T) {
	for want, env := range map[string]map[string]string{
		"/x/berth/contexts.json":         {"XDG_CONFIG_HOME": "/x", "HOME": "/h"},
		"/h/.config/berth/contexts.json": {"XDG_CONFIG_HOME": "relative", "HOME": "/h"},
		"":                               {},
	} {
		require.Equal(t, want, contextsPath(func(name string) string { return env[name] }))
	}
	require.ErrorContains(t, updateContexts("", nil), "set HOME or XDG_CONFIG_HOME")
}

func TestUpdateContexts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "contexts.json")
	set, err := loadContexts(path)
	require.NoError(t, err)
	require.Empty(t, set.Contexts)
	paris := savedContext{URL: "https://paris:8070", Token: v1.Clear{Secret: "secret"}, CA: "pem"}
	require.NoError(t, updateContexts(path, func(s *contextSet) error {
		s.Current, s.Contexts["paris"] = "paris", paris
		return nil
	}))
	set, err = loadContexts(path)
	require.NoError(t, err)
	require.Equal(t, contextSet{Current: "paris", Contexts: map[string]savedContext{"paris": paris}}, set)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file is left")
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", set, set, set), "secret")

}

func TestBadContexts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "contexts.json")
	for text, want := range map[string]string{
		`{"contexts": {"a": {"token": "hidden", "url": 1}}}`: "is not a file of contexts",
		`hidden`: "is not a file of contexts",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := loadContexts(path)
		require.ErrorContains(t, err, path+": ")
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hidden")
	}
	require.NoError(t, os.Chmod(path, 0o640))
	_, err := loadContexts(path)
	require.ErrorContains(t, err, "run chmod 600 on it")
}
