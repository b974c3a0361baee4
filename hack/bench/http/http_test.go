package http_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

const (
	badRate   = 10_000 // requests a second
	badFor    = 30 * time.Second
	slowConns = 1100
)

// bad are requests that are refused at each of the checks.
func bad(token string) []string {
	head := "Host: x\r\nAuthorization: Bearer " + token + "\r\nAccept: application/vnd.berthv1+json\r\n"
	return []string{
		"GET /containers HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /containers HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer berth_00000000000000000000000000000000\r\n\r\n",
		"GET /nowhere/at/all HTTP/1.1\r\n" + head + "\r\n",
		"POST /containers HTTP/1.1\r\n" + head + "Content-Length: 9\r\n\r\n{\"image\":",
		"POST /network/ports HTTP/1.1\r\n" + head + "Content-Length: 11\r\n\r\n{\"port\":\"x\"",
		"POST /containers/none/start HTTP/1.1\r\n" + head + "\r\n",
	}
}

// flood sends bad requests over some connections at a rate, until ctx ends.
func flood(ctx context.Context, t testing.TB, d *berthtest.Berth) *atomic.Int64 {
	const conns, tick = 10, 20 * time.Millisecond
	perTick := badRate * int(tick) / int(time.Second) / conns
	requests := bad(d.Token)
	var answered atomic.Int64
	var all sync.WaitGroup
	for n := range conns {
		all.Go(func() {
			c, err := net.Dial("tcp", d.Addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			go func() { <-ctx.Done(); c.Close() }()
			all.Go(func() { count(c, &answered) })
			ticker := time.NewTicker(tick)
			defer ticker.Stop()
			for i := n; ctx.Err() == nil; <-ticker.C {
				var batch strings.Builder
				for range perTick {
					batch.WriteString(requests[i%len(requests)])
					i++
				}
				if _, err := io.WriteString(c, batch.String()); err != nil {
					return
				}
			}
		})
	}
	t.Cleanup(all.Wait)
	return &answered
}

func count(c net.Conn, answered *atomic.Int64) {
	r := bufio.NewReader(c)
	for {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		answered.Add(1)
	}
}

// good asks every few milliseconds until ctx ends, and reports the p50, the p99
// and the longest time of an answer, in ms.
func good(ctx context.Context, t *testing.B, d *berthtest.Berth) {
	var took []time.Duration
	for ctx.Err() == nil {
		began := time.Now()
		answer, err := d.Try(context.Background(), "GET", "/containers", nil)
		require.NoError(t, err)
		require.Equal(t, 200, answer.Status)
		took = append(took, time.Since(began))
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
	slices.Sort(took)
	ms := func(i int) float64 { return float64(took[i].Microseconds()) / 1000 }
	t.ReportMetric(ms(len(took)/2), "p50-ms")
	t.ReportMetric(ms(len(took)*99/100), "p99-ms")
	t.ReportMetric(ms(len(took)-1), "max-ms")
}

func rss(t testing.TB, pid int) (mib float64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	_, err = fmt.Sscan(after, &mib)
	require.NoError(t, err)
	return mib / 1024
}

// BenchmarkBadRequests is 10,000 bad requests a second beside a good client.
func BenchmarkBadRequests(b *testing.B) {
	d := berthtest.Start(b, berthtest.Options{})
	for range b.N {
		before := rss(b, d.Pid())
		ctx, cancel := context.WithTimeout(context.Background(), badFor)
		answered := flood(ctx, b, d)
		good(ctx, b, d)
		cancel()
		b.ReportMetric(float64(answered.Load())/badFor.Seconds(), "bad/s")
		b.ReportMetric(rss(b, d.Pid())-before, "MiB-more")
	}
}

// BenchmarkSlowloris is 1,100 connections that send a header byte by byte,
// beside a good client.
func BenchmarkSlowloris(b *testing.B) {
	d := berthtest.Start(b, berthtest.Options{})
	for range b.N {
		before := rss(b, d.Pid())
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		var all sync.WaitGroup
		for range slowConns {
			all.Go(func() { trickle(ctx, d.Addr) })
		}
		good(ctx, b, d)
		b.ReportMetric(rss(b, d.Pid())-before, "MiB-more")
		cancel()
		all.Wait()
	}
}

// trickle keeps one slow connection open, and opens it again when it is closed.
func trickle(ctx context.Context, addr string) {
	for ctx.Err() == nil {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		text := "GET /containers HTTP/1.1\r\nHost: " + strings.Repeat("x", 1000)
		for i := 0; i < len(text) && ctx.Err() == nil; i++ {
			if _, err := c.Write([]byte{text[i]}); err != nil {
				break
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
		_ = c.Close()
	}
}
