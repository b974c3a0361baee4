package sftp_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// phase is what a phase of requests measured.
type phase struct {
	times []time.Duration // of each request
	cpu   time.Duration   // of the daemon, for each request
}

// p99 returns the time that one request in a hundred exceeds.
func p99(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)*99/100])
}

// cpuTime returns the processor time of a process's threads.
func cpuTime(b *testing.B, pid int) (total time.Duration) {
	b.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	require.NoError(b, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		var one time.Duration
		if _, scanned := fmt.Sscan(string(text), &one); err == nil && scanned == nil {
			total += one
		}
	}
	return total
}

// measure sends requests one after another. The first ones are not measured: what was opened
// or closed before them has ended when they are answered.
func measure(b *testing.B, d *berthtest.Berth) (p phase) {
	b.Helper()
	const requests = 400
	for range requests / 4 {
		d.Must(b, "GET", "/volumes", nil)
	}
	before := cpuTime(b, d.Pid())
	for range requests {
		began := time.Now()
		d.Must(b, "GET", "/volumes", nil)
		p.times = append(p.times, time.Since(began))
	}
	p.cpu = (cpuTime(b, d.Pid()) - before) / requests
	return p
}

// openHalf opens 1,000 connections that do not log in, from 20 addresses: the daemon keeps
// as many of them as it keeps at most. It returns when the daemon has answered or closed each.
func openHalf(b *testing.B, port int) (list []net.Conn) {
	b.Helper()
	for i := range 1000 {
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%20))}}
		conn, err := from.DialContext(b.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		require.NoError(b, err)
		list = append(list, conn)
		if i%2 == 0 { // as far as a client comes without a key exchange
			_, _ = conn.Write([]byte("SSH-2.0-attacker\r\n")) // it may be closed already
		}
	}
	for _, conn := range list {
		require.NoError(b, conn.SetReadDeadline(time.Now().Add(time.Minute)))
		_, _ = conn.Read(make([]byte, 1))
	}
	return list
}

// measureBeside measures requests, with half-open connections or without them.
func measureBeside(b *testing.B, d *berthtest.Berth, port int, halfOpen bool) phase {
	b.Helper()
	if halfOpen {
		for _, conn := range openHalf(b, port) {
			defer conn.Close()
		}
	}
	return measure(b, d)
}

// BenchmarkHalfOpen compares requests beside 1,000 half-open connections with those without
// them, in turns of less than a second. It reports the ratio of the processor time of a request,
// and of the 99th percentiles: the medians of all turns, and the quarters around them.
func BenchmarkHalfOpen(b *testing.B) {
	port := berthtest.FreePort(b)
	d := berthtest.Start(b, berthtest.Options{Config: fmt.Sprintf("sftp: {enabled: true, host: 127.0.0.1, port: %d}", port)})
	measure(b, d)
	var cpu, tail []float64
	pooled := map[bool][]time.Duration{}
	for b.Loop() {
		for i := range 10 {
			p := map[bool]phase{}
			for n := range 2 { // each is first in every second turn
				with := (n+i)%2 == 0
				p[with] = measureBeside(b, d, port, with)
				pooled[with] = append(pooled[with], p[with].times...)
			}
			cpu = append(cpu, float64(p[true].cpu)/float64(p[false].cpu))
			tail = append(tail, p99(p[true].times)/p99(p[false].times))
		}
	}
	for name, ratios := range map[string][]float64{"cpu": cpu, "p99": tail} {
		slices.Sort(ratios)
		b.ReportMetric(ratios[len(ratios)/4], name+"-low")
		b.ReportMetric(ratios[len(ratios)/2], name)
		b.ReportMetric(ratios[len(ratios)*3/4], name+"-high")
	}
	b.ReportMetric(p99(pooled[true])/p99(pooled[false]), "p99-pooled")
	b.ReportMetric(0, "ns/op")
}
