package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const clientToken = "berth_00000000000000000000000000000002"

// fakeAPI is a daemon with prepared responses. It records the requests.
type fakeAPI struct {
	t       *testing.T
	server  *httptest.Server
	answers map[string]string // "GET /path?query" to the status, a blank and the body

	mu       sync.Mutex
	requests []string // "GET /path?query body"
}

func newFakeAPI(t *testing.T, answers map[string]string) *fakeAPI {
	f := &fakeAPI{t: t, answers: answers}
	f.server = httptest.NewServer(f)
	t.Cleanup(f.server.Close)
	return f
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	key := r.Method + " " + r.URL.RequestURI()
	f.mu.Lock()
	f.requests = append(f.requests, strings.TrimSpace(key+" "+string(body)))
	f.mu.Unlock()
	var text string
	status := 200
	answer, known := f.answers[key]
	switch {
	case r.Header.Get("Authorization") != "Bearer "+clientToken:
		status, text = 401, `{"error":"Missing or invalid authorization token"}`
	case r.Header.Get("Accept") != "Application/vnd.berthv1+json":
		status, text = 403, `{"error":"Invalid vendor header"}`
	case len(body) > 0 && r.Header.Get("Content-Type") != "application/json":
		status, text = 415, `{"error":"not JSON"}`
	case !known:
		status, text = 404, `{"error":"Route not found"}`
	default:
		_, _ = fmt.Sscanf(answer, "%d", &status)
		_, text, _ = strings.Cut(answer, " ")
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// env returns an environment in which a command calls f without a configuration.
func (f *fakeAPI) env() []string {
	return []string{"BERTH_URL=" + f.server.URL, "BERTH_TOKEN=" + clientToken, "BERTH_CONFIG=/does/not/exist.yaml"}
}

// command runs a command as main does and returns its output.
func command(t *testing.T, env []string, args ...string) (out, errOut string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	root := NewRoot(Options{Version: "0.0.0", Environ: env})
	root.SetArgs(args)
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	err = root.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

// writeFile writes a configuration and returns its path.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "berth.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const oneContainer = `{"internal_id":"mc","state":"exit","power":"running","install_state":"ready","image":"a:1","volume_id":"v",
	"ports":[{"ip":"0.0.0.0","port":25565,"protocol":"tcp"},{"ip":"::1","port":2,"protocol":"udp","container_port":3}],
	"limits":{"memory":67108864,"cpu":10},"generation":4,"observed_generation":4,"exit_code":137,"restart_count":2,
	"message":"cannot\tstart","conditions":[{"type":"Started","status":"False","reason":"PortTaken","message":"taken"}]}`

// exchange is what a command sends and prints.
type exchange struct {
	answers  map[string]string
	requests string // joined by newlines; empty: the keys of answers
	text     string // is in the output, with blanks squeezed
}

func exchanges() map[string]exchange {
	return map[string]exchange{
		"status": {map[string]string{"GET /readyz": `200 {"status":"ok"}`, "GET /containers": `200 {"containers":[{"internal_id":"mc"}]}`, "GET /containers/mc": "200 " + oneContainer},
			"GET /readyz\nGET /containers\nGET /containers/mc",
			"CONTAINER STATE POWER UP RESTARTS IMAGE PORTS NOTE mc exit running - 2 a:1 25565/tcp,[::1]:2/udp->3 exit code 137, cannot start"},
		"containers --label a=b --label c": {map[string]string{"GET /containers?label=a%3Db&label=c": "200 {\"containers\":[" + oneContainer + "]}"}, "",
			"CONTAINER STATE POWER IMAGE VOLUME mc exit running a:1 v"},
		"containers mc": {map[string]string{"GET /containers/mc": "200 " + oneContainer}, "", "memory: 64MiB cpu: 10 cores"},
		"start mc lobby": {map[string]string{"POST /containers/mc/start": `200 {"message":"Container start initiated"}`, "POST /containers/lobby/start": `200 {"message":"ok"}`},
			"POST /containers/mc/start\nPOST /containers/lobby/start", "mc: Container start initiated lobby: ok"},
		"stop mc":            {map[string]string{"POST /containers/mc/stop": `200 {"message":"done"}`}, "", "mc: done"},
		"kill mc":            {map[string]string{"POST /containers/mc/kill": `200 {"message":"done"}`}, "", "mc: done"},
		"restart mc":         {map[string]string{"POST /containers/mc/restart": `200 {"message":"done"}`}, "", "mc: done"},
		"reinstall mc":       {map[string]string{"POST /containers/mc/reinstall": `200 {"message":"done"}`}, "", "mc: done"},
		"send mc say -n hi":  {map[string]string{"POST /containers/mc/command": `200 {}`}, `POST /containers/mc/command {"command":"say -n hi"}`, "mc: command sent"},
		"delete mc":          {map[string]string{"DELETE /containers/mc": `200 {"message":"going"}`}, "", "mc: going"},
		"delete ../x":        {map[string]string{"DELETE /containers/..%2Fx": `200 {"message":"going"}`}, "", "../x: going"},
		"delete mc --volume": {map[string]string{"DELETE /containers/mc?volume=true": `200 {"message":"going"}`}, "", "mc: going"},
		"logs mc -n 3":       {map[string]string{"GET /containers/mc/logs?tail=3": `200 {"lines":[{"data":"one"},{"data":"two"}]}`}, "", "one two"},
		"logs mc --install":  {map[string]string{"GET /containers/mc/install-logs?tail=100": `200 {"lines":[]}`}, "", ""},
		"events -n 2": {map[string]string{"GET /events?limit=1": `200 {"events":[],"newest":9}`, "GET /events?since=7&limit=1000": `200 {"events":[{"seq":8,"container":"mc","event":"event","data":"exit"}]}`},
			"GET /events?limit=1\nGET /events?since=7&limit=1000", "mc exit"},
		"events --since 0": {map[string]string{"GET /events?since=0&limit=1000": `200 {"events":[]}`}, "", ""},
		"volumes": {map[string]string{"GET /volumes": `200 {"volumes":[{"volume_id":"v","size":1048576,"used_by":["a","b"]}]}`}, "",
			"VOLUME SIZE LIMIT USED BY CREATED v 1MiB no limit a,b"},
		"volumes create --size-limit 1KiB": {map[string]string{"POST /volumes": `201 {"volume_id":"v"}`}, `POST /volumes {"size_limit":1024}`, "v"},
		"volumes delete v":                 {map[string]string{"DELETE /volumes/v": `200 {}`}, "", "v: deleted"},
		"ports": {map[string]string{"GET /network/ports": `200 {"ports":[{"ip":"::","port":1,"protocol":"tcp","in_use":true,"container":"mc","firewall":{"state":"applied"}}]}`}, "",
			"ADDRESS PROTOCOL IN USE CONTAINER FIREWALL [::]:1 tcp yes mc applied"},
		"ports add :: 1-9 tcp": {map[string]string{"POST /network/ports/bulk": `200 {"added_count":9}`}, `POST /network/ports/bulk {"ip":"::","ports":"1-9","protocol":"tcp"}`, "9 added"},
		"ports delete :: 1-2,9": {map[string]string{"POST /network/ports/bulk-delete": `200 {"deleted_count":3,"skipped":[]}`},
			`POST /network/ports/bulk-delete {"ports":[{"ip":"::","port":1},{"ip":"::","port":2},{"ip":"::","port":9}]}`, "3 deleted"},
		"ports delete ::1 5 --protocol udp": {map[string]string{"DELETE /network/ports/::1/5?protocol=udp": `200 {}`}, "", "[::1]:5/udp: deleted"},
		"token create --ttl 8h --scope read,power --container mc --single-use": {map[string]string{"POST /auth/tokens": `200 {"token":"berth_1","expires_at":"then"}`},
			`POST /auth/tokens {"ttl":"8h","remove_on_use":true,"scopes":["read","power"],"containers":["mc"]}`, "berth_1"},
		"token list":      {map[string]string{"GET /auth/tokens": `200 {"tokens":[{"id":"t","scopes":["read"],"containers":[],"expires_at":"then"}]}`}, "", "TOKEN SCOPES CONTAINERS EXPIRES t read - then"},
		"token revoke t":  {map[string]string{"DELETE /auth/tokens/t": `200 {}`}, "", "t: revoked"},
		"wait mc exit":    {map[string]string{"GET /containers/mc": "200 " + oneContainer}, "", "mc is exit"},
		"wait mc deleted": {map[string]string{"GET /containers/mc": `404 {"error":"Container not found"}`}, "", "mc is deleted"},
	}
}

func TestCommands(t *testing.T) {
	for line, x := range exchanges() {
		t.Run(line, func(t *testing.T) {
			f := newFakeAPI(t, x.answers)
			out, _, err := command(t, f.env(), strings.Fields(line)...)
			require.NoError(t, err)
			want := x.requests
			for key := range x.answers {
				want = orElse(want, key)
			}
			require.Equal(t, want, strings.Join(f.requests, "\n"))
			require.Contains(t, strings.Join(strings.Fields(out), " "), x.text)

			out, _, err = command(t, f.env(), append([]string{"-o", "json"}, strings.Fields(line)...)...)
			require.NoError(t, err)
			for decoder := json.NewDecoder(strings.NewReader(out)); decoder.More(); {
				require.NoError(t, decoder.Decode(new(any)), out)
			}
		})
	}
}

func TestCompletionOffersNoFiles(t *testing.T) {
	for line, want := range map[string]string{"start ": ":4\n", "logs ": ":4\n", "status -o ": "text\njson\n:4\n", "apply -f ": ":0\n", "config check ": ":0\n"} {
		out, _, err := command(t, nil, append([]string{"__complete"}, strings.Split(line, " ")...)...)
		require.NoError(t, err)
		require.Equal(t, want, out, line)
	}
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

func TestHelpHasAnExample(t *testing.T) {
	root := NewRoot(Options{})
	var check func(path []string)
	seen := 0
	check = func(path []string) {
		cmd, _, err := root.Find(path)
		require.NoError(t, err)
		for _, child := range cmd.Commands() {
			check(append(append([]string{}, path...), child.Name()))
		}
		if cmd.HasSubCommands() && cmd.Example == "" || cmd.GroupID == "daemon" || len(path) > 0 && path[0] == "config" || cmd.Name() == "help" {
			return
		}
		seen++
		require.Contains(t, cmd.Example, "berth "+strings.Join(path, " "), path)
		out, _, err := command(t, nil, append(path, "--help")...)
		require.NoError(t, err)
		require.NotContains(t, out, "--reconcile.workers", "the keys of the configuration are for serve")
		require.Contains(t, out, "--url")
		require.NotContains(t, out, "--token ", "every user of the host can read arguments")
	}
	check(nil)
	require.Greater(t, seen, 15)
	out, _, err := command(t, nil, "serve", "--help")
	require.NoError(t, err)
	require.Contains(t, out, "--reconcile.workers")
}
