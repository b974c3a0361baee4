package main

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
	"berth/hack/test/paneltest"
)

// BenchmarkConsole measures what 50 browsers cost that look at a console of 2,000 lines a second. Each of them must receive
// every line once and in order.
func BenchmarkConsole(b *testing.B) {
	const sockets, seconds, rate, part = 50, 20, 2000, 40
	daemon := berthtest.Start(b, berthtest.Options{})
	daemon.Engine.Import(b, "berth-test/wings:1", enginetest.BusyboxTar(b), `CMD ["sh","-c","eval \"$STARTUP\""]`)
	p := paneltest.Start(b)
	n := newProcess(b, p, daemon, "")
	n.start()
	const id = "a1a1a1a1-1111-4111-8111-a1a1a1a1a1a1"
	// A part takes usleep's time and a little more: the rate is measured.
	script := fmt.Sprintf(`stty -echo; while read line; do i=0; while [ $i -lt %d ]; do seq $((i+1)) $((i+%d)); i=$((i+%d)); usleep %d; done; done`,
		seconds*rate, part, part, 1_000_000*part/rate-2_500)
	p.SetServer(b, fmt.Sprintf(`{"settings": {"uuid": %q, "meta": {"name": "s"}, "environment": {}, "invocation": %q, "skip_egg_scripts": true,
"build": {"memory_limit": 64, "swap": 0, "io_weight": 500, "cpu_limit": 0, "disk_space": 16, "oom_killer": true}, "container": {"image": "~berth-test/wings:1"},
"allocations": {"default": {"ip": "127.0.0.1", "port": %d}, "mappings": {}}, "egg": {}},
"process_configuration": {"startup": {"done": []}, "stop": {"type": "command", "value": "stop"}, "configs": []}}`, id, script, berthtest.FreePort(b)))
	n.Want(b, 202, "POST", "/api/servers", map[string]any{"uuid": id, "start_on_completion": true})
	berthtest.Until(b, hang, "the server runs", func() bool {
		return strings.Contains(n.Want(b, 200, "GET", "/api/servers/"+id, nil).Body, `"state":"running"`)
	})
	process, err := procfs.NewProc(n.cmd.Process.Pid)
	require.NoError(b, err)
	for b.Loop() {
		list := make([]*websocket.Conn, sockets)
		for i := range list {
			list[i] = watch(b, n, id, p.URL)
		}
		before, err := process.Stat()
		require.NoError(b, err)
		began := time.Now()
		n.Want(b, 204, "POST", "/api/servers/"+id+"/commands", map[string]any{"commands": []string{"go"}})
		var all errgroup.Group
		for _, conn := range list {
			all.Go(func() error { return count(conn, seconds*rate) })
		}
		require.NoError(b, all.Wait())
		took := time.Since(began).Seconds()
		after, err := process.Stat()
		require.NoError(b, err)
		status, err := process.NewStatus()
		require.NoError(b, err)
		b.ReportMetric(seconds*rate/took, "lines/s")
		b.ReportMetric(100*(after.CPUTime()-before.CPUTime())/took, "%core")
		b.ReportMetric(float64(status.VmHWM)/(1<<20), "MiB")
	}
}

// watch opens a socket of a server, as a browser does.
func watch(b *testing.B, n *process, id, origin string) *websocket.Conn {
	b.Helper()
	dialer := websocket.Dialer{EnableCompression: true}
	conn, response, err := dialer.Dial(strings.Replace(n.URL, "http", "ws", 1)+"/api/servers/"+id+"/ws", http.Header{"Origin": {origin}})
	require.NoError(b, err)
	_ = response.Body.Close()
	b.Cleanup(func() { _ = conn.Close() })
	claims := map[string]any{"server_uuid": id, "scope": "websocket", "permissions": []string{"websocket.connect"}}
	berthtest.Until(b, hang, "the token is newer than the bridge", func() bool {
		require.NoError(b, conn.WriteJSON(map[string]any{"event": "auth", "args": []string{paneltest.Sign(b, claims)}}))
		for {
			_, text, err := conn.ReadMessage()
			require.NoError(b, err)
			if bytes.Contains(text, []byte(`"status"`)) || bytes.Contains(text, []byte(`error`)) {
				return !bytes.Contains(text, []byte(`error`))
			}
		}
	})
	return conn
}

// count reads lines with the numbers from 1 to last, in order and once each.
func count(conn *websocket.Conn, last int) error {
	for next := 1; next <= last; {
		if err := conn.SetReadDeadline(time.Now().Add(hang)); err != nil {
			return err
		}
		_, text, err := conn.ReadMessage()
		if err != nil {
			return fmt.Errorf("after line %d: %w", next-1, err)
		}
		line, is := bytes.CutPrefix(text, []byte(`{"event":"console output","args":["`))
		if !is {
			continue
		}
		number, _, _ := bytes.Cut(line, []byte(`"`))
		if got, err := strconv.Atoi(string(number)); err == nil && got != next {
			return fmt.Errorf("line %d instead of %d", got, next)
		} else if err == nil {
			next++
		}
	}
	return nil
}
