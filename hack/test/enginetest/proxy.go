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

// Fault handles a request in the place of a Proxy.
type Fault func(p *Proxy, w http.ResponseWriter, r *http.Request)

// Delay forwards a request after 300 ms.
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

// Hang gives no answer until the client disconnects or the fault ends.
func Hang(_ *Proxy, _ http.ResponseWriter, r *http.Request) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// Reset closes the connection without an answer.
func Reset(*Proxy, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// Lose forwards the request, and closes the connection instead of answering.
func Lose(p *Proxy, _ http.ResponseWriter, r *http.Request) {
	p.pass.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// Before returns a Fault that calls f and then forwards the request.
func Before(f func()) Fault {
	return func(p *Proxy, w http.ResponseWriter, r *http.Request) {
		f()
		p.pass.ServeHTTP(w, r)
	}
}

// Answer returns a Fault that gives every request the same answer.
func Answer(status int, contentType, text string) Fault {
	return func(_ *Proxy, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}
}

// Proxy is a proxy between berth and its engine that can inject faults.
type Proxy struct {
	socket string
	pass   *httputil.ReverseProxy

	mu       sync.Mutex
	fault    Fault // nil: all requests are forwarded
	hits     func(*http.Request) bool
	injected int
	phase    context.Context // ends with each change of the fault
	next     context.CancelFunc
}

// StartProxy starts a proxy to an engine. It ends with the test.
func StartProxy(t testing.TB, engine *Client) *Proxy {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "bp") // short, because the path of a socket has at most 107 bytes
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

// Host returns the proxy's address in the form of DOCKER_HOST.
func (p *Proxy) Host() string { return "unix://" + p.socket }

// Inject makes the proxy handle each request for which hits returns true with f.
// It closes open streams.
func (p *Proxy) Inject(f Fault, hits func(*http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.hits, p.injected = f, hits, 0
	p.next()
	p.phase, p.next = context.WithCancel(context.Background())
}

// Clear ends the fault and returns the number of requests that it handled.
func (p *Proxy) Clear() (injected int) {
	injected = p.Injected()
	p.Inject(nil, nil)
	return injected
}

// Injected returns the number of requests that the current fault has handled.
func (p *Proxy) Injected() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.injected
}

// ServeHTTP forwards a request, or handles it with the injected fault.
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

// All matches every request.
func All(*http.Request) bool { return true }

// Act returns a condition that matches requests other than GET and HEAD whose
// path ends with, or whose method is, one of ends.
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
