package enginetest

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Fault is what a Proxy does to a request.
type Fault func(p *Proxy, w http.ResponseWriter, r *http.Request)

// Delay passes a request on after some time.
func Delay(p *Proxy, w http.ResponseWriter, r *http.Request) {
	late := time.NewTimer(300 * time.Millisecond)
	defer late.Stop()
	select {
	case <-late.C:
		p.pass.ServeHTTP(w, r)
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	}
}

// Hang answers nothing until the client leaves or the fault is over.
func Hang(_ *Proxy, _ http.ResponseWriter, r *http.Request) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// Reset ends the connection without an answer.
func Reset(*Proxy, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// Lose lets the engine do what is asked for, and ends the connection instead of answering.
func Lose(p *Proxy, _ http.ResponseWriter, r *http.Request) {
	p.pass.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// Before calls f and then passes a request on.
func Before(f func()) Fault {
	return func(p *Proxy, w http.ResponseWriter, r *http.Request) {
		f()
		p.pass.ServeHTTP(w, r)
	}
}

// Answer answers everything in the same way.
func Answer(status int, contentType, text string) Fault {
	return func(_ *Proxy, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}
}

// Proxy stands between a berth and its engine, and misbehaves when told to.
type Proxy struct {
	socket string
	pass   *httputil.ReverseProxy

	mu       sync.Mutex
	fault    Fault // nil: everything is passed on
	hits     func(*http.Request) bool
	injected int
	phase    context.Context // ends with each change of the fault
	next     context.CancelFunc
}

// StartProxy starts a proxy to an engine. It ends with the test.
func StartProxy(t testing.TB, engine *Client) *Proxy {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "bp") // short: paths of sockets are at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", engine.socket)
	}
	transport := &http.Transport{DialContext: dial}
	p := &Proxy{socket: filepath.Join(dir, "s"), pass: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "engine"
		},
		Transport: transport, FlushInterval: -1,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}
	p.phase, p.next = context.WithCancel(context.Background())
	l, err := net.Listen("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: p}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		p.Clear()
		_ = server.Close()
		serving.Wait()
		transport.CloseIdleConnections()
		_ = os.RemoveAll(dir)
	})
	return p
}

// Host is what DOCKER_HOST is to be.
func (p *Proxy) Host() string { return "unix://" + p.socket }

// Inject lets the proxy do something to each request that a condition holds
// for. Streams that are open break off.
func (p *Proxy) Inject(f Fault, hits func(*http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.hits, p.injected = f, hits, 0
	p.next()
	p.phase, p.next = context.WithCancel(context.Background())
}

// Clear ends a fault. It returns how many requests it met.
func (p *Proxy) Clear() (injected int) {
	injected = p.Injected()
	p.Inject(nil, nil)
	return injected
}

// Injected is how many requests the present fault has met.
func (p *Proxy) Injected() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.injected
}

// ServeHTTP passes a request on, or does what Inject has asked for.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	fault, phase := p.of(r)
	defer context.AfterFunc(phase, cancel)()
	if r = r.WithContext(ctx); fault != nil {
		fault(p, w, r)
		return
	}
	p.pass.ServeHTTP(w, r)
}

func (p *Proxy) of(r *http.Request) (Fault, context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault == nil || !p.hits(r) {
		return nil, p.phase
	}
	p.injected++
	return p.fault, p.phase
}

// All is every request.
func All(*http.Request) bool { return true }

// Act is a request that changes something, and whose path ends with one of some words.
func Act(ends ...string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			return false
		}
		for _, end := range ends {
			if strings.HasSuffix(r.URL.Path, end) || r.Method == end {
				return true
			}
		}
		return false
	}
}
