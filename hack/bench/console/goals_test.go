package console_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/bench/table"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// BenchmarkIdle runs 50 containers, or BERTH_BENCH_CONTAINERS, with nobody listening: what berth and the engine
// use of a core, which other load hardly changes, and berth's memory. The engine has no other client; what it uses
// without one is measured after berth is killed.
func BenchmarkIdle(b *testing.B) {
	count := 50
	if text := os.Getenv("BERTH_BENCH_CONTAINERS"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(b, err)
		count = n
	}
	engine := enginetest.StartIsolated(b)
	d := berthtest.Prepare(b, berthtest.Options{})
	d.Engine = engine.Client
	d.Run(b)
	d.Ready(b)
	for i := range count {
		d.Create(b, fmt.Sprintf("idle%d", i), berthtest.Spec{"image": engine.Busybox(b), "power": "running"})
	}
	for i := range count {
		d.State(b, fmt.Sprintf("idle%d", i), "running")
	}
	wait(2 * resync) // then no run is new
	var cores, engines, memory []float64
	for b.Loop() {
		began, used, served := time.Now(), cpu(b, d.Pid()), cpu(b, engine.Pid())
		wait(window)
		percent := 100 / time.Since(began).Seconds()
		cores = append(cores, (cpu(b, d.Pid())-used).Seconds()*percent)
		engines = append(engines, (cpu(b, engine.Pid())-served).Seconds()*percent)
		memory = append(memory, rss(b, d.Pid()))
	}
	d.Kill9(b)
	began, served := time.Now(), cpu(b, engine.Pid())
	wait(window)
	alone := (cpu(b, engine.Pid()) - served).Seconds() * 100 / time.Since(began).Seconds()
	for n := range engines {
		engines[n] -= alone
	}
	of := fmt.Sprintf("idle with %d running, ", count)
	table.Add(b, table.Row{Measure: of + "of a core", Unit: "%", Berth: cores, Goal: table.AtMost(max(0.5, 0.005*float64(count)))})
	table.Add(b, table.Row{Measure: of + "of a core by the engine, above what it uses without berth", Unit: "%", Berth: engines, Goal: table.AtMost(max(0.5, 0.02/3*float64(count)))})
	table.Add(b, table.Row{Measure: of + "memory", Unit: "MiB", Berth: memory, Goal: table.AtMost(max(64, 128*float64(count)/300))})
}

// BenchmarkThousandLines has one client at a container that prints 1,000 lines a second,
// and at the same time one at the engine's own log stream: how old the lines are when
// they arrive.
func BenchmarkThousandLines(b *testing.B) {
	d := berthtest.Start(b, berthtest.Options{})
	c := d.Started(b, "thousand", spec(printer(1000)))
	l := listen(b, d, "thousand")
	bare := follow(b, c.ContainerID)
	p50 := table.Row{Measure: "console p50 at 1,000 lines/s, above the engine's", Unit: "ms", Goal: table.AtMost(5)}
	p99 := table.Row{Measure: "console p99 at 1,000 lines/s, above the engine's", Unit: "ms", Goal: table.AtMost(5)}
	for b.Loop() {
		wait(time.Second)
		l.reset()
		bare.reset()
		wait(10 * time.Second)
		_, mine := l.reset()
		_, floor := bare.reset()
		p50.Berth = append(p50.Berth, quantile(b, mine, 50)-quantile(b, floor, 50))
		p99.Berth = append(p99.Berth, quantile(b, mine, 99)-quantile(b, floor, 99))
	}
	table.Add(b, p50)
	table.Add(b, p99)
}

// quantile returns a percentile of ages, in ms.
func quantile(b *testing.B, ages []time.Duration, percent int) float64 {
	require.NotEmpty(b, ages)
	slices.Sort(ages)
	return ages[len(ages)*percent/100].Seconds() * 1e3
}

// follow reads the engine's log stream of a container, and counts as a client does.
func follow(b *testing.B, id string) *client {
	b.Helper()
	engine := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", enginetest.Socket())
	}}}
	ctx, cancel := context.WithCancel(b.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine/containers/"+id+"/logs?follow=1&stdout=1&stderr=1&timestamps=1&tail=0", nil)
	require.NoError(b, err)
	answer, err := engine.Do(request)
	require.NoError(b, err)
	c := &client{}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer answer.Body.Close()
		readFrames(answer.Body, c)
	})
	b.Cleanup(func() { cancel(); reading.Wait() })
	return c
}

// readFrames reads a stream of Docker until its end: a header of 8 bytes, and a line
// that begins with its time.
func readFrames(r io.Reader, c *client) {
	var header [8]byte
	for {
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return
		}
		line := make([]byte, binary.BigEndian.Uint32(header[4:]))
		if _, err := io.ReadFull(r, line); err != nil {
			return
		}
		at, err := time.Parse(time.RFC3339Nano, string(line[:slices.Index(line, ' ')]))
		if err != nil {
			return
		}
		c.lines.Add(1)
		c.mu.Lock()
		c.ages = append(c.ages, time.Since(at))
		c.mu.Unlock()
	}
}
