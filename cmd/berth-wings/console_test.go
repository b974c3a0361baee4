package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
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
	const sockets, seconds, rate = 50, 20, 2000
	daemon := berthtest.Start(b, berthtest.Options{})
	daemon.Engine.Import(b, "berth-test/wings:1", enginetest.BusyboxTar(b), `CMD ["sh","-c","eval \"$STARTUP\""]`)
	p := paneltest.Start(b)
	n := newProcess(b, p, daemon, "")
	n.start()
	const id = "a1a1a1a1-1111-4111-8111-a1a1a1a1a1a1"
	// It prints what is due, also if the machine had no time for it before.
	script := fmt.Sprintf(`stty -echo; while read line; do awk 'BEGIN { f = "/proc/uptime"; getline u < f; close(f); start = u + 0; while (i < %[1]d) {
getline u < f; close(f); due = (u - start) * %[2]d; while (i < due && i < %[1]d) print ++i; system("usleep 5000") } }'; done`, seconds*rate, rate)
	p.SetServer(b, fmt.Sprintf(`{"settings": {"uuid": %q, "meta": {"name": "s"}, "environment": {}, "invocation": %q, "skip_egg_scripts": true,
"build": {"memory_limit": 64, "swap": 0, "io_weight": 500, "cpu_limit": 0, "disk_space": 16, "oom_killer": true}, "container": {"image": "~berth-test/wings:1"},
"allocations": {"default": {"ip": "127.0.0.1", "port": %d}, "mappings": {}}, "egg": {}},
"process_configuration": {"startup": {"done": []}, "stop": {"type": "command", "value": "stop"}, "configs": []}}`, id, script, berthtest.FreePort(b)))
	n.Want(b, 202, "POST", "/api/servers", map[string]any{"uuid": id, "start_on_completion": true})
	berthtest.Until(b, hang, "the server runs", func() bool {
		return strings.Contains(n.Want(b, 200, "GET", "/api/servers/"+id, nil).Body, `"state":"running"`)
	})
	pids := map[string]int{"bridge": n.cmd.Process.Pid, "berth": daemon.Pid(), "browsers": os.Getpid()}
	for b.Loop() {
		list := make([]*websocket.Conn, sockets)
		for i := range list {
			list[i] = watch(b, n, id, p.URL)
		}
		before := map[string]float64{}
		for name, pid := range pids {
			before[name] = processorTime(b, pid)
		}
		began := time.Now()
		n.Want(b, 204, "POST", "/api/servers/"+id+"/commands", map[string]any{"commands": []string{"go"}})
		var all errgroup.Group
		for _, conn := range list {
			all.Go(func() error { return count(conn, seconds*rate) })
		}
		require.NoError(b, all.Wait())
		took := time.Since(began).Seconds()
		for name, pid := range pids {
			b.ReportMetric(100*(processorTime(b, pid)-before[name])/took, "%core-"+name)
		}
		b.ReportMetric(seconds*rate/took, "lines/s")
		process, err := procfs.NewProc(pids["bridge"])
		require.NoError(b, err)
		status, err := process.NewStatus()
		require.NoError(b, err)
		b.ReportMetric(float64(status.VmHWM)/(1<<20), "MiB")
	}
}

// processorTime returns the processor time that a process has used, in seconds.
func processorTime(b *testing.B, pid int) float64 {
	b.Helper()
	process, err := procfs.NewProc(pid)
	require.NoError(b, err)
	stat, err := process.Stat()
	require.NoError(b, err)
	return stat.CPUTime()
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
