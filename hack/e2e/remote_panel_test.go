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

	"berth/hack/berthtest"
)

// told is a transition, as the panel is told of it and as GET /events shows it.
type told struct {
	Seq       uint64
	Time      time.Time
	Container string
	Event     string
	Data      string
}

// asked is one request that the panel got.
type asked struct {
	at     time.Time
	token  string
	node   string
	events []told
	status int // that it was answered with
}

// panel is a panel that is told of transitions.
type panel struct {
	addr  string // it keeps it while it is away
	token string
	hang  chan struct{} // closed at the end: what hangs until then
	late  time.Duration // from what is taken to the answer

	mu     sync.Mutex
	judge  func(asked) int // the status of an answer; -1: none comes
	all    []asked
	server *httptest.Server
}

// newPanel is a panel that takes everything.
func newPanel(t *testing.T) *panel {
	t.Helper()
	p := &panel{addr: fmt.Sprintf("127.0.0.1:%d", berthtest.FreePort(t)), token: berthtest.NewToken(), hang: make(chan struct{})}
	p.judge = func(asked) int { return 200 }
	p.open(t)
	t.Cleanup(func() { close(p.hang); p.leave() })
	return p
}

// open makes the panel reachable, at the address that it has always had.
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

// leave makes connections to the panel be refused.
func (p *panel) leave() {
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
		Events []told
	}
	text, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(text, &body)
	}
	a := asked{time.Now(), r.Header.Get("Authorization"), body.Node, body.Events, 0}
	p.mu.Lock()
	if a.status = p.judge(a); err != nil || r.Method != "POST" || r.URL.Path != "/hook" || r.Header.Get("Content-Type") != "application/json" {
		a.status = 599 // takes nothing
	}
	p.all = append(p.all, a)
	p.mu.Unlock()
	if a.status < 0 {
		<-p.hang
		return
	}
	pause(p.late)
	w.WriteHeader(a.status)
}

// answer makes the panel answer so from now on.
func (p *panel) answer(judge func(asked) int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judge = judge
}

// requests are all that the panel got so far.
func (p *panel) requests() []asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]asked(nil), p.all...)
}

// taken are the transitions that the panel took, in the order in which it did.
func (p *panel) taken() (list []told) {
	for _, a := range p.requests() {
		if a.status == 200 {
			list = append(list, a.events...)
		}
	}
	return list
}

// remote is the configuration of a daemon that tells p.
func (p *panel) remote() string {
	return fmt.Sprintf("remote: {enabled: true, url: \"http://%s/hook\", token: %s, node: node-1}", p.addr, p.token)
}

// knows waits until the panel has every stored transition, but for some. It
// fails if one came before the one before it, or other than GET /events has it.
// It returns how often one came again.
func (p *panel) knows(t *testing.T, b *berthtest.Berth, but ...uint64) (repeats int) {
	t.Helper()
	var all []told
	parked := map[uint64]bool{}
	for _, seq := range but {
		parked[seq] = true
	}
	berthtest.Until(t, wait, "the panel has got everything", func() bool {
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

// history is all transitions, from the first.
func history(t *testing.T, b *berthtest.Berth) []told {
	t.Helper()
	var body struct{ Events []told }
	b.Get(t, "/events?limit=10000", &body)
	for i, e := range body.Events {
		require.EqualValues(t, i+1, e.Seq, "numbers have no gap")
	}
	return body.Events
}

// metric is the value of a series of a monitor, such as `x{reason="y"}`.
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

// reload puts other settings in the place of some text of the configuration.
func reload(t *testing.T, b *berthtest.Berth, old, now string) {
	t.Helper()
	text, err := os.ReadFile(b.Config)
	require.NoError(t, err)
	require.Contains(t, string(text), old)
	b.WriteConfig(t, strings.Replace(string(text), old, now, 1))
	b.Must(t, "POST", "/remote/config/reload", nil)
}
