package console_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// client counts the lines that a socket brings, and how old the last of each
// message is.
type client struct {
	conn    *websocket.Conn
	lines   atomic.Int64
	dropped atomic.Int64 // messages that say so
	mu      sync.Mutex
	ages    []time.Duration // of each line
	done    chan struct{}
}

// dial opens a socket without history.
func dial(b *testing.B, d *berthtest.Berth, id string) *websocket.Conn {
	b.Helper()
	conn, _, err := websocket.DefaultDialer.Dial("ws://"+d.Addr+"/ws/"+id+"?tail=0", http.Header{"Authorization": {"Bearer " + d.Token}})
	require.NoError(b, err)
	return conn
}

// listen opens a socket and reads it until the end.
func listen(b *testing.B, d *berthtest.Berth, id string) *client {
	c := &client{conn: dial(b, d, id), done: make(chan struct{})}
	b.Cleanup(c.close)
	go c.read()
	return c
}

func (c *client) close() {
	_ = c.conn.Close()
	<-c.done
}

var (
	isConsole = []byte(`{"event":"console"`)
	lineEnd   = []byte(`\n`)
	timeKey   = []byte(`"time":"`)
)

func (c *client) read() {
	defer close(c.done)
	for {
		_, m, err := c.conn.ReadMessage()
		if err != nil {
			return
		}
		switch {
		case bytes.HasPrefix(m, isConsole):
			c.count(m)
		case bytes.Contains(m, []byte("were dropped")):
			c.dropped.Add(1)
		}
	}
}

func (c *client) count(m []byte) {
	n := bytes.Count(m, lineEnd)
	at := m[bytes.LastIndex(m, timeKey)+len(timeKey):]
	t, err := time.Parse(time.RFC3339Nano, string(at[:bytes.IndexByte(at, '"')]))
	if err != nil {
		return
	}
	age := time.Since(t)
	c.lines.Add(int64(n))
	c.mu.Lock()
	defer c.mu.Unlock()
	for range n {
		c.ages = append(c.ages, age)
	}
}

// reset forgets what was counted, and returns it.
func (c *client) reset() (lines int64, ages []time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ages, c.ages = c.ages, nil
	return c.lines.Swap(0), ages
}

// rss is a process' memory in MiB.
func rss(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(b, err)
	for line := range strings.Lines(string(text)) {
		var kib int
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			return float64(kib) / 1024
		}
	}
	b.Fatal("no VmRSS")
	return 0
}

// cpu is what a process has used.
func cpu(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(b, err)
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+2:]))
	var user, system int
	_, err = fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	require.NoError(b, err)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// printer prints lines of 80 bytes at a rate or a little more, in bursts every
// 12 ms or so: to sleep for 10 takes a process of its own.
func printer(rate int) string {
	burst := max(1, rate/80)
	line := strings.Repeat("x", 79)
	return fmt.Sprintf(`while :; do j=0; while [ $j -lt %d ]; do echo %s; j=$((j+1)); done; usleep %d; done`, burst, line, 1_000_000*burst/rate-2_500)
}

func spec(command string) berthtest.Spec {
	return berthtest.Spec{"startup_command": command, "tty": false}
}

// window is how long each measurement takes: two resyncs fall into it.
const (
	resync = time.Minute
	window = 2*resync + 10*time.Second
)

// wait lets time pass: what is measured goes on meanwhile.
func wait(d time.Duration) { <-time.After(d) }
