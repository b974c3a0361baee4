package node_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/paneltest"
)

// gate holds the next request to berth that begins with a method and a path. berth carries it out then, also if the bridge
// has left.
type gate struct {
	prefix     string
	held, open chan struct{}
}

// between puts a proxy between the bridge and berth, which holds what the gate names.
func (w *world) between(t *testing.T) *atomic.Pointer[gate] {
	t.Helper()
	next := new(atomic.Pointer[gate])
	berth := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: w.berth.Addr})
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if g := next.Load(); g != nil && strings.HasPrefix(r.Method+" "+r.URL.Path, g.prefix) && next.CompareAndSwap(g, nil) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
			defer cancel()
			r = r.WithContext(ctx)
			close(g.held)
			<-g.open
		}
		berth.ServeHTTP(out, r)
	}))
	t.Cleanup(s.Close)
	w.stop()
	var err error
	w.api, err = client.New(client.Options{URL: s.URL, Token: v1.Secret(w.berth.Token)})
	require.NoError(t, err)
	w.run(t)
	return next
}

// abandon sends a request of a panel that gives up while the gate holds a request of the bridge.
func (w *world) abandon(t *testing.T, g *gate, path, body string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+paneltest.Token)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if a, err := http.DefaultClient.Do(r); err == nil {
			_ = a.Body.Close()
		}
	}()
	<-g.held
	cancel()
	<-ended
}

// TestAbandonedRequests: a panel that gives up leaves nothing behind that is carried out later, or twice.
func TestAbandonedRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	next := w.between(t)
	hold := func(prefix string) *gate {
		g := &gate{prefix, make(chan struct{}), make(chan struct{})}
		next.Store(g)
		return g
	}
	g := hold("POST /volumes")
	w.abandon(t, g, "/api/servers", `{"uuid": "`+alpha+`"}`)
	w.Want(t, 202, "POST", "/api/servers", map[string]any{"uuid": alpha}) // it is repeated
	close(g.open)
	w.panel.Await(t, "POST /servers/"+alpha+"/install", 1)
	w.unmarked(t)
	volumes, err := w.berth.API.Volumes().List(t.Context())
	require.NoError(t, err)
	require.Len(t, volumes, 1)

	g = hold("PATCH /volumes/")
	w.abandon(t, g, atAlpha+"/power", `{"action": "start"}`)
	close(g.open)
	w.state(t, "running")
	w.unmarked(t)

	// A suspension is completed, and so are limits.
	memory := w.berth.Container(t, alpha).Limits.Memory
	w.panel.SetServer(t, strings.Replace(w.server(`"suspended": true, `), `"memory_limit": 64`, `"memory_limit": 80`, 1))
	g = hold("GET /containers/")
	w.abandon(t, g, atAlpha+"/sync", "")
	close(g.open)
	w.state(t, "offline")
	require.Greater(t, w.berth.Container(t, alpha).Limits.Memory, memory)
}

// TestSuspension: a server that is suspended is stopped, whatever begins at the same time, and whether the bridge runs or not.
func TestSuspension(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	next := w.between(t)
	set := func(more string) {
		t.Helper()
		w.panel.SetServer(t, w.server(more))
		w.Want(t, 204, "POST", atAlpha+"/sync", nil)
	}
	const suspended = `"suspended": true, `
	off := func() {
		t.Helper()
		berthtest.Until(t, 3*time.Minute, "it is stopped", func() bool {
			c := w.berth.Container(t, alpha)
			return c.Power == v1.PowerOff && !c.State.Active()
		})
		w.unmarked(t)
		require.Equal(t, v1.PowerOff, w.berth.Container(t, alpha).Power)
	}
	w.panel.Fail(func(c paneltest.Call) int {
		return map[bool]int{true: 500}[strings.HasSuffix(c.Path, "/install") && c.Method == "GET"]
	})
	w.Want(t, 202, "POST", "/api/servers", map[string]any{"uuid": alpha, "start_on_completion": true})
	w.panel.Await(t, "GET /servers/"+alpha+"/install", 1)
	set(suspended)
	w.panel.Fail(nil)
	w.panel.Await(t, "POST /servers/"+alpha+"/install", 1)
	off()

	// The stop may overtake a start.
	set("")
	g := &gate{"POST /containers/" + alpha + "/start", make(chan struct{}), make(chan struct{})}
	next.Store(g)
	w.Want(t, 202, "POST", atAlpha+"/power", map[string]any{"action": "start"})
	<-g.held
	stops := w.actions(t, "container.stop")
	set(suspended)
	berthtest.Until(t, 3*time.Minute, "it is stopped first", func() bool { return w.actions(t, "container.stop") > stops })
	close(g.open)
	w.unmarked(t)
	off()

	// The panel may suspend a server while there is no bridge.
	set("")
	w.Want(t, 202, "POST", atAlpha+"/power", map[string]any{"action": "start"})
	w.state(t, "running")
	w.unmarked(t)
	w.stop()
	w.panel.SetServer(t, w.server(suspended))
	w.run(t)
	off()
}

// actions returns how often berth has carried out a request, by its audit log.
func (w *world) actions(t *testing.T, action string) int {
	t.Helper()
	list, err := w.berth.API.Audit().Last(t.Context(), 1000, v1.AuditFilter{Container: alpha})
	require.NoError(t, err)
	return len(slices.DeleteFunc(list, func(e v1.AuditEntry) bool { return e.Action != action }))
}

// TestOneVolume: the first requests of a server at once create one volume.
func TestOneVolume(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { _, _ = w.Try(t, "GET", atAlpha+"/files/list-directory?directory=/", nil) })
	}
	all.Wait()
	volumes, err := w.berth.API.Volumes().List(t.Context())
	require.NoError(t, err)
	require.Len(t, volumes, 1)
}
