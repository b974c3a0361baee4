package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// panelEvent is a transition as the panel receives it and as GET /events shows it.
type panelEvent struct {
	Seq       uint64
	Time      time.Time
	Container string
	Event     string
	Data      string
}

// panelRequest is a request that the panel received.
type panelRequest struct {
	at     time.Time
	token  string
	node   string
	events []panelEvent
	status int // of the answer
}

// panel is a remote endpoint that receives transitions.
type panel struct {
	addr  string // stays the same while the panel is down
	token string
	hang  chan struct{} // closed at the end: releases requests without an answer
	delay time.Duration // delay of each answer

	mu      sync.Mutex
	respond func(panelRequest) int // returns the status of an answer; -1: no answer
	all     []panelRequest
	server  *httptest.Server
}

// newPanel starts a panel that accepts everything.
func newPanel(t *testing.T) *panel {
	t.Helper()
	p := &panel{addr: fmt.Sprintf("127.0.0.1:%d", berthtest.FreePort(t)), token: berthtest.NewToken(), hang: make(chan struct{})}
	p.respond = func(panelRequest) int { return 200 }
	p.open(t)
	t.Cleanup(func() { close(p.hang); p.shutDown() })
	return p
}

// open makes the panel listen at its address.
func (p *panel) open(t *testing.T) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	berthtest.Until(t, wait, "the panel's address is free", func() bool {
		l, err := net.Listen("tcp", p.addr)
		if err == nil {
			_ = server.Listener.Close()
			server.Listener = l
		}
		return err == nil
	})
	server.Start()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = server
}

// shutDown closes the panel's listener, so that connections are refused.
func (p *panel) shutDown() {
	p.mu.Lock()
	server := p.server
	p.server = nil
	p.mu.Unlock()
	if server != nil {
		server.CloseClientConnections()
		server.Close()
	}
}

func (p *panel) serve(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Node   string
		Events []panelEvent
	}
	text, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(text, &body)
	}
	a := panelRequest{time.Now(), r.Header.Get("Authorization"), body.Node, body.Events, 0}
	p.mu.Lock()
	if a.status = p.respond(a); err != nil || r.Method != "POST" || r.URL.Path != "/hook" || r.Header.Get("Content-Type") != "application/json" {
		a.status = 599 // malformed: accepts nothing
	}
	p.all = append(p.all, a)
	p.mu.Unlock()
	if a.status < 0 {
		<-p.hang
		return
	}
	pause(p.delay)
	w.WriteHeader(a.status)
}

// answer sets the function that returns the status of answers.
func (p *panel) answer(respond func(panelRequest) int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.respond = respond
}

// requests returns all requests that the panel has received.
func (p *panel) requests() []panelRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]panelRequest(nil), p.all...)
}

// taken returns the transitions that the panel accepted, in that order.
func (p *panel) taken() (list []panelEvent) {
	for _, a := range p.requests() {
		if a.status == 200 {
			list = append(list, a.events...)
		}
	}
	return list
}

// remote returns the configuration of a daemon that sends transitions to p.
func (p *panel) remote() string {
	return fmt.Sprintf("remote: {enabled: true, url: \"http://%s/hook\", token: %s, node: node-1}", p.addr, p.token)
}

// requireReceived waits until the panel has accepted every stored transition but those of
// but. It fails the test if they came out of order or differ from GET /events. It
// returns the number of repeated transitions.
func (p *panel) requireReceived(t *testing.T, b *berthtest.Berth, but ...uint64) (repeats int) {
	t.Helper()
	var all []panelEvent
	parked := map[uint64]bool{}
	for _, seq := range but {
		parked[seq] = true
	}
	berthtest.Until(t, wait, "the panel has accepted every transition", func() bool {
		all = history(t, b)
		seen := map[uint64]bool{}
		for _, e := range p.taken() {
			seen[e.Seq] = true
		}
		return len(all) > 0 && len(seen) == len(all)-len(but)
	})
	last := uint64(0)
	for _, e := range p.taken() {
		if e.Seq <= last {
			repeats++
			continue
		}
		for last++; parked[last]; last++ {
		}
		require.Equal(t, all[e.Seq-1], e, "in order, without a gap, as it is stored")
	}
	for _, a := range p.requests() {
		require.Equal(t, "Bearer "+p.token, a.token)
		require.Equal(t, "node-1", a.node)
	}
	return repeats
}

// history returns all transitions from the first.
func history(t *testing.T, b *berthtest.Berth) []panelEvent {
	t.Helper()
	var body struct{ Events []panelEvent }
	b.Get(t, "/events?limit=10000", &body)
	for i, e := range body.Events {
		require.EqualValues(t, i+1, e.Seq, "numbers have no gap")
	}
	return body.Events
}

// metric returns the value of a series of GET /metrics, such as `x{reason="y"}`.
func metric(t *testing.T, b *berthtest.Berth, series string) float64 {
	t.Helper()
	for line := range strings.Lines(string(b.Must(t, "GET", "/metrics", nil).Body)) {
		if value, is := strings.CutPrefix(line, series+" "); is {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			require.NoError(t, err, line)
			return n
		}
	}
	t.Fatalf("no series %s", series)
	return 0
}

// reload replaces text in the configuration and reloads it.
func reload(t *testing.T, b *berthtest.Berth, old, now string) {
	t.Helper()
	text, err := os.ReadFile(b.Config)
	require.NoError(t, err)
	require.Contains(t, string(text), old)
	b.WriteConfig(t, strings.Replace(string(text), old, now, 1))
	b.Must(t, "POST", "/remote/config/reload", nil)
}
