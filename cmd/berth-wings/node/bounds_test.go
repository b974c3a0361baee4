package node

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"berth/api/egg"
	"berth/cmd/berth-wings/config"
	"berth/cmd/berth-wings/panel"
)

// TestForgedTokens: only a token that the panel has signed, in the way that it does, has claims.
func TestForgedTokens(t *testing.T) {
	const secret = "0123456789abcdef"
	n := &Node{}
	n.file.Store(&config.File{Config: config.Config{Token: secret}})
	sign := func(method jwt.SigningMethod, key any, more jwt.MapClaims) string {
		all := jwt.MapClaims{"server_uuid": "s", "permissions": []string{"*"}, "exp": time.Now().Add(time.Hour).Unix()}
		for name, value := range more {
			all[name] = value
		}
		text, err := jwt.NewWithClaims(method, all).SignedString(key)
		require.NoError(t, err)
		return text
	}
	good := sign(jwt.SigningMethodHS256, []byte(secret), nil)
	_, err := n.parse(good)
	require.NoError(t, err)
	other := strings.Split(sign(jwt.SigningMethodHS256, []byte(secret), jwt.MapClaims{"server_uuid": "other"}), ".")
	parts := strings.Split(good, ".")
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	none := sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil)
	for what, text := range map[string]string{
		"nothing": "", "none": none, "none with a signature": none + parts[2], "none in capitals": "eyJhbGciOiJOT05FIn0." + parts[1] + ".",
		"RSA": sign(jwt.SigningMethodRS256, key, nil), "a longer hash": sign(jwt.SigningMethodHS512, []byte(secret), nil),
		"another key": sign(jwt.SigningMethodHS256, []byte("another"), nil), "no key": sign(jwt.SigningMethodHS256, []byte{}, nil),
		"claims of another": parts[0] + "." + other[1] + "." + parts[2], "signature of another": parts[0] + "." + parts[1] + "." + other[2],
		"no signature": parts[0] + "." + parts[1] + ".", "four parts": good + ".x", "two parts": parts[0] + "." + parts[1],
		"permissions are a text": sign(jwt.SigningMethodHS256, []byte(secret), jwt.MapClaims{"permissions": "*"}),
		"the end is a text":      sign(jwt.SigningMethodHS256, []byte(secret), jwt.MapClaims{"exp": "tomorrow"}),
	} {
		_, err := n.parse(text)
		require.Error(t, err, what)
	}
}

// exchange is a side of a session of SFTP.
type exchange struct {
	io.Reader
	write func([]byte) (int, error)
}

func (e exchange) Write(p []byte) (int, error) { return e.write(p) }

// TestChangeOfOneWhoLeaves: what berth does for a client that takes no answer any more is recorded.
func TestChangeOfOneWhoLeaves(t *testing.T) {
	path := ssh.Marshal(struct{ Name string }{"/a"})
	answer := func(id uint32) []byte { return request(fxStatus, id, []byte{0, 0, 0, statusOK}) }
	answers, to := io.Pipe()
	var recorded []string
	f := &filter{pending: map[uint32]*fileChange{}, may: func(string) bool { return true },
		record: func(event string, _ any) { recorded = append(recorded, event) },
		client: exchange{bytes.NewReader(append(request(fxStat, 1, path), request(fxRemove, 2, path)...)),
			func([]byte) (int, error) { return 0, io.ErrClosedPipe }}}
	var all sync.WaitGroup
	f.berth = exchange{answers, func(p []byte) (int, error) {
		if p[4] == fxRemove {
			all.Go(func() {
				_, _ = to.Write(append(answer(1), answer(2)...)) // it fails if nobody reads
				_ = to.Close()
			})
		}
		return len(p), nil
	}}
	_ = f.run() // that the client has left
	_ = answers.Close()
	all.Wait()
	require.Equal(t, []string{"delete"}, recorded)
}

// deadlines is an answer that has the times until which its client may send.
type deadlines struct {
	http.ResponseWriter
	set []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

// TestSilentUpload: each part of an upload arrives within a time, or the connection ends.
func TestSilentUpload(t *testing.T) {
	w := &deadlines{}
	body := newUploadBody(&call{w: w, Request: httptest.NewRequest(http.MethodPost, "/", strings.NewReader("0123456789"))})
	body.limit(4)
	text, err := io.ReadAll(body)
	require.ErrorIs(t, err, errTooLarge)
	require.Equal(t, "0123", string(text))
	body.limit(math.MaxInt64)
	text, err = io.ReadAll(body)
	require.NoError(t, err)
	require.Equal(t, "456789", string(text))
	require.GreaterOrEqual(t, len(w.set), 3)
	for _, at := range w.set {
		require.WithinDuration(t, time.Now(), at, 2*silence)
	}
}

// TestQueuesOfSockets: while all sockets together have much that is not taken, one that takes nothing is disconnected early, and
// what it had is free again.
func TestQueuesOfSockets(t *testing.T) {
	n := &Node{}
	sockets := make(chan *socket)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := new(websocket.Upgrader).Upgrade(w, r, nil)
		if err == nil {
			sockets <- &socket{n: n, conn: conn, wake: make(chan struct{}, 1), done: make(chan struct{})}
		}
	}))
	defer server.Close()
	open := func() *socket {
		conn, response, err := websocket.DefaultDialer.Dial(strings.Replace(server.URL, "http", "ws", 1), nil)
		require.NoError(t, err)
		_ = response.Body.Close()
		t.Cleanup(func() { _ = conn.Close() })
		return <-sockets
	}
	closed := func(s *socket) bool {
		select {
		case <-s.done:
			return true
		default:
			return false
		}
	}
	e := event{Name: "console output", Args: []string{strings.Repeat("x", 1<<10)}}.prepared()
	fill := func(s *socket) (bytes int) {
		for !closed(s) {
			s.put(e)
		}
		return s.queued
	}
	alone := open()
	require.Greater(t, fill(alone), maxQueue)
	require.Equal(t, int64(alone.queued), n.queued.Load())
	n.queued.Add(maxQueues)
	one := open()
	require.Less(t, fill(one), maxQueue/32)
	for _, s := range []*socket{alone, one} {
		s.forget()
		s.put(e)
	}
	require.Equal(t, int64(maxQueues), n.queued.Load())
}

// TestAddressesOfBackups: a link to a backup leads to the public Internet, or where the operator allows.
func TestAddressesOfBackups(t *testing.T) {
	file := &config.File{}
	file.Config.System.Backups.AllowedHosts = []string{"10.1.0.0/16", "store.internal"}
	n := new(Node)
	n.file.Store(file)
	for _, to := range []string{"127.0.0.1:80", "10.2.0.1:80", "[fe80::1%eth0]:80", "[::ffff:10.2.0.1]:80",
		"100.100.100.200:80", "168.63.129.16:80", "192.0.0.192:80", "[64:ff9b::7f00:1]:80"} { // metadata of clouds, and a translated loopback
		require.Error(t, n.mayReach("public.example", to), to)
		require.NoError(t, n.mayReach("store.internal", to), to)
	}
	for _, to := range []string{"1.1.1.1:80", "10.1.0.1:80", "[::ffff:10.1.0.1]:80", "[2606:4700::1]:443"} {
		require.NoError(t, n.mayReach("public.example", to), to)
	}
}

// TestRedirectOfBackup: a host that the operator allows by its name cannot lead to others.
func TestRedirectOfBackup(t *testing.T) {
	var page *httptest.Server
	page = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/gzip")
		if r.URL.Path == "/away" {
			http.Redirect(w, r, page.URL, http.StatusFound) // 127.0.0.1
		}
	}))
	defer page.Close()
	file := &config.File{}
	file.Config.System.Backups.AllowedHosts = []string{"localhost"}
	n := &Node{ctx: t.Context(), o: Options{Log: slog.New(slog.DiscardHandler)}}
	n.file.Store(file)
	at := strings.Replace(page.URL, "127.0.0.1", "localhost", 1)
	content, err := n.openArchive(at)
	require.NoError(t, err)
	require.NoError(t, content.Close())
	_, err = n.openArchive(at + "/away")
	require.ErrorContains(t, err, "not a public address")
}

// TestBodyOfRefused: a client that is refused may not keep its connection by a body that it does not send.
func TestBodyOfRefused(t *testing.T) {
	file := &config.File{}
	n := new(Node)
	n.file.Store(file)
	for _, path := range []string{"/api/servers", "/none"} {
		w := &deadlines{ResponseWriter: httptest.NewRecorder()}
		n.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader("{")))
		require.NotEmpty(t, w.set, path)
		require.WithinDuration(t, time.Now(), w.set[len(w.set)-1], 2*writeTime)
	}
}

// TestSilentStore: a store that sends nothing of a backup any more ends its restore.
func TestSilentStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := io.Pipe()
		defer from.Close()
		go func() { _, _ = to.Write([]byte("begin")) }()
		body := &steadyBody{from, func() { _ = to.CloseWithError(context.Canceled) }}
		time.Sleep(2 * silence) // the server is stopped meanwhile
		text, err := io.ReadAll(body)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, "begin", string(text))
	})
}

// TestConnectionsAreBounded: the oldest of too many connections of an address is closed, unless it is a proxy's.
func TestConnectionsAreBounded(t *testing.T) {
	for _, proxies := range [][]string{nil, {"127.0.0.0/8"}} {
		n := &Node{}
		n.file.Store(&config.File{Config: config.Config{API: config.API{TrustedProxies: proxies}}})
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
		n.Bound(server.Config)
		server.StartTLS()
		var open []net.Conn
		for range connections().Tenant + 1 {
			c, err := net.Dial("tcp", server.Listener.Addr().String())
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Close() })
			open = append(open, c)
		}
		if proxies == nil {
			require.NoError(t, open[0].SetReadDeadline(time.Now().Add(3*time.Minute)))
			_, err := open[0].Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF, "the oldest one")
		}
		for _, c := range open[1:] {
			_ = c.Close()
		}
		answer, err := server.Client().Get(server.URL)
		require.NoError(t, err)
		_ = answer.Body.Close()
		if proxies != nil {
			require.NoError(t, tls.Client(open[0], &tls.Config{InsecureSkipVerify: true}).Handshake())
		}
		server.Close()
	}
}

// TestLateAnswer: an answer of the panel that is late does not replace a newer one.
func TestLateAnswer(t *testing.T) {
	const uuid = "11111111-2222-3333-4444-555555555555"
	const object = `{"settings":{"uuid":"` + uuid + `","suspended":%t},"process_configuration":{}}`
	asked, release := make(chan struct{}, 2), make(chan struct{})
	var suspended atomic.Bool
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		now := suspended.Load()
		if asked <- struct{}{}; !now {
			<-release
		}
		_, _ = fmt.Fprintf(w, object, now)
	}))
	t.Cleanup(at.Close)
	n, s := &Node{o: Options{Panel: panel.New(panel.Options{Remote: at.URL})}}, newServer(egg.Server{UUID: uuid})
	done := make(chan error, 2)
	go func() { done <- n.refresh(t.Context(), s) }()
	<-asked
	suspended.Store(true)
	go func() { done <- n.refresh(t.Context(), s) }()
	select { // the second one has no answer before the first one has
	case err := <-done:
		done <- err
	case <-time.After(100 * time.Millisecond):
	}
	close(release)
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	require.True(t, s.suspended())
}
