package cli

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"
)

const clientToken = "berth_00000000000000000000000000000002"

// fakeAPI is a daemon with prepared responses. It records the requests.
type fakeAPI struct {
	t      *testing.T
	server *httptest.Server

	mu       sync.Mutex
	answers  map[string]string // "GET /path?query" to the status, a blank and the body
	requests []string          // "GET /path?query body"
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
	answer, known := f.answers[key]
	f.mu.Unlock()
	var text string
	status := 200
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
		var head string
		head, text, _ = strings.Cut(answer, " ")
		if _, code, coded := strings.Cut(head, ":"); coded {
			w.Header().Set("X-Error-Code", code)
		}
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// set changes an answer.
func (f *fakeAPI) set(request, answer string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[request] = answer
}

// seen returns the requests so far.
func (f *fakeAPI) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// env returns an environment in which a command calls f without a configuration.
func (f *fakeAPI) env() []string {
	return []string{"BERTH_URL=" + f.server.URL, "BERTH_TOKEN=" + clientToken, "BERTH_CONFIG=/does/not/exist.yaml"}
}

// fakeTerminal is the side of a terminal that a command writes to.
type fakeTerminal struct {
	*os.File
	master *os.File

	mu   sync.Mutex
	text []byte
}

// openTerminal returns a terminal of cols times rows cells.
func openTerminal(t *testing.T, cols, rows uint16) *fakeTerminal {
	t.Helper()
	master, tty, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(tty, &pty.Winsize{Cols: cols, Rows: rows}))
	f := &fakeTerminal{File: tty, master: master}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			f.mu.Lock()
			f.text = append(f.text, buffer[:n]...)
			f.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = tty.Close()
		_, _ = master.WriteString("\n") // ends the read of an attachment that has ended
		_ = master.Close()
		<-done
	})
	return f
}

// shown returns what was written to the terminal.
func (f *fakeTerminal) shown() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return string(f.text)
}

// until waits until the terminal shows a text.
func (f *fakeTerminal) until(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(f.shown(), text) }, time.Minute, 5*time.Millisecond, "the terminal does not show %q: %q", text, &lateText{f})
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

// newFakeSocket serves a WebSocket: it sends messages and closes with code and reason.
// A second one is closed because the container is deleted. requested is the URI of the
// first one.
func newFakeSocket(t *testing.T, code int, reason string, messages ...string) (env []string, requested *string) {
	requested = new(string)
	upgrader := websocket.Upgrader{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer "+clientToken || r.URL.Path == "/containers/none":
			http.Error(w, `{"error":"Container not found"}`, http.StatusNotFound)
			return
		case !strings.HasPrefix(r.URL.Path, "/ws"):
			_, _ = io.WriteString(w, oneContainer)
			return
		}
		ws, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer ws.Close()
		if *requested != "" {
			code, reason, messages = websocket.CloseNormalClosure, "", nil
		} else {
			*requested = r.URL.RequestURI()
		}
		for _, m := range messages {
			_ = ws.WriteMessage(websocket.TextMessage, []byte(m))
		}
		_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(time.Second))
		_, _, _ = ws.ReadMessage() // until the client has received it
	}))
	t.Cleanup(server.Close)
	return []string{"BERTH_URL=" + server.URL, "BERTH_TOKEN=" + clientToken}, requested
}

// writePair writes a certificate of the given serial number.
func writePair(t *testing.T, dir string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "berth"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
}

// lateText is what a terminal shows when it is printed.
type lateText struct{ f *fakeTerminal }

func (l *lateText) String() string { return l.f.shown() }
