package volume_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"berth/api/limit"
	"berth/api/server"
	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/runtime/volume"
	"berth/store"
)

const token = "berth_00000000000000000000000000000000"

// fixed is a configuration that never changes.
type fixed struct{ config v1.Config }

func (f fixed) Current() v1.Config        { return f.config }
func (f fixed) Reload() ([]string, error) { return nil, nil }
func (fixed) Changed() <-chan struct{}    { return nil }

// serve starts a berth server with one volume, and returns the URL of its file f.
func serve(b *testing.B, m *volume.Manager) string {
	db, err := store.Open(b.TempDir(), store.Options{})
	require.NoError(b, err)
	require.NoError(b, db.Update(func(tx *store.Tx) error {
		return errors.Join(store.Volumes.Create(tx, id, v1.VolumeSpec{}),
			store.Volumes.SetStatus(tx, id, func(s *v1.VolumeStatus) { s.Created = true }))
	}))
	c := v1.Defaults()
	c.Authorization.Token = token
	c.Complete()
	hub := stream.New(b.TempDir(), stream.Options{})
	s := server.New(server.Deps{Store: db, Settings: fixed{c}, Hub: hub, Files: m,
		Registerer: prometheus.NewRegistry(), WrongTokens: limit.NewRate(limit.WrongTokens()), Log: slog.New(slog.DiscardHandler), Version: "0.0.0"})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	ended := make(chan error, 1)
	go func() { ended <- s.Listen(ln) }()
	b.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		require.NoError(b, errors.Join(s.Shutdown(ctx), <-ended))
		hub.Close()
		require.NoError(b, db.Close())
	})
	return fmt.Sprintf("http://%s/volumes/%s/files/content?path=f", ln.Addr(), id)
}

const transfer = 1 << 30

// noise creates a file of random bytes, 1 GiB.
func noise(b *testing.B, p string) {
	f, err := os.Create(p)
	require.NoError(b, err)
	_, err = io.CopyN(f, rand.Reader, transfer)
	require.NoError(b, errors.Join(err, f.Sync(), f.Close()))
}

// resident returns the memory of this process that no file backs, in bytes.
func resident(b *testing.B) int64 {
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(b, err)
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	require.NoError(b, err)
	return kb << 10
}

// most calls run, and returns the most memory that both ends had together.
func most(b *testing.B, run func()) (bytes int64) {
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			bytes = max(bytes, resident(b))
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	})
	run()
	close(done)
	watch.Wait()
	return bytes
}

// transfers alternates between a bare connection and berth, and reports by how much
// memory grew during berth's turns.
func transfers(b *testing.B, bare, berth func()) {
	base, peak := resident(b), int64(0)
	turns(b, contender{name: "bare", do: bare}, contender{name: "berth", do: func() { peak = max(peak, most(b, berth)) }})
	b.ReportMetric(float64(peak-base)/(1<<20), "MiB-grown")
}

// bareListener accepts one connection after the other and calls do with it.
func bareListener(b *testing.B, do func(net.Conn) error) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			if err := errors.Join(do(c), c.Close()); err != nil {
				b.Error(err)
			}
		}
	})
	b.Cleanup(func() { ln.Close(); wg.Wait() })
	return ln.Addr().String()
}

// BenchmarkDownload receives 1 GiB over loopback and discards it: from a bare TCP
// connection and io.Copy, and from berth.
func BenchmarkDownload(b *testing.B) {
	m, dir := open(b)
	noise(b, filepath.Join(dir, "f"))
	address := bareListener(b, func(c net.Conn) error {
		f, err := os.Open(filepath.Join(dir, "f"))
		if err != nil {
			return err
		}
		_, err = io.Copy(c, f)
		return errors.Join(err, f.Close())
	})
	buf := make([]byte, 256<<10)
	url := serve(b, m) + "&token=" + token
	transfers(b, func() {
		c, err := net.Dial("tcp", address)
		require.NoError(b, err)
		n, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{c}, buf)
		require.NoError(b, errors.Join(err, c.Close()))
		require.EqualValues(b, transfer, n)
	}, func() {
		resp, err := http.Get(url)
		require.NoError(b, err)
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, resp.Body, buf)
		require.NoError(b, errors.Join(err, resp.Body.Close()))
		require.EqualValues(b, transfer, n)
	})
}
