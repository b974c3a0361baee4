package console_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	fws "github.com/fasthttp/websocket"
	"github.com/gofiber/contrib/websocket"
	"github.com/gofiber/fiber/v2"
	"github.com/stretchr/testify/require"

	"berth/api/server"
	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/store"
)

// BenchmarkFanOut compares berth's own server and hub with a bare broadcaster
// on the same library: 50 clients, 100,000 lines of 80 bytes, so many lines at
// a time. Both deliver everything. The figure is lines a second and client.
func BenchmarkFanOut(b *testing.B) {
	const clients, lines = 50, 100_000
	for _, batch := range []int{1, 10, 100} {
		for name, begin := range map[string]func(b *testing.B) (url string, publish func([]v1.Line)){"bare": bare, "berth": berth} {
			b.Run(fmt.Sprintf("%s/batch=%d", name, batch), func(b *testing.B) {
				for range b.N {
					b.StopTimer()
					url, publish := begin(b)
					done := receive(b, url, clients, lines)
					list := make([]v1.Line, batch)
					for i := range list {
						list[i] = v1.Line{Time: time.Now(), Data: []byte(strings.Repeat("x", 79))}
					}
					b.StartTimer()
					began, used := time.Now(), cpu(b, os.Getpid())
					for range lines / batch {
						publish(list)
					}
					done()
					b.ReportMetric(lines/time.Since(began).Seconds(), "lines/s/client")
					b.ReportMetric((cpu(b, os.Getpid()) - used).Seconds(), "cpu-s")
				}
			})
		}
	}
}

// receive lets clients count lines; done waits until each has all of them.
func receive(b *testing.B, url string, clients, lines int) (done func()) {
	var all sync.WaitGroup
	for range clients {
		conn, _, err := fws.DefaultDialer.Dial(url, http.Header{"Authorization": {"Bearer " + token}})
		require.NoError(b, err)
		b.Cleanup(func() { _ = conn.Close() })
		c := &client{conn: conn, done: make(chan struct{})}
		require.NoError(b, err)
		_, _, err = conn.ReadMessage() // the greeting: it listens from now on
		require.NoError(b, err)
		all.Go(func() {
			for got := 0; got < lines; {
				_, m, err := c.conn.ReadMessage()
				if err != nil {
					b.Error(err)
					return
				}
				got += strings.Count(string(m), `\n`)
			}
		})
	}
	return all.Wait
}

const token = "berth_0123456789abcdef0123456789abcdef"

func serve(b *testing.B, listen func(net.Listener) error, end func()) (addr string) {
	b.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	var done sync.WaitGroup
	done.Go(func() { _ = listen(ln) })
	b.Cleanup(func() {
		end()
		done.Wait()
	})
	return ln.Addr().String()
}

// bare is a broadcaster as small as it can be: a channel for each client.
func bare(b *testing.B) (url string, publish func([]v1.Line)) {
	var mu sync.Mutex
	var to []chan []byte
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Get("/ws", websocket.New(func(c *websocket.Conn) {
		messages := make(chan []byte, 1024)
		mu.Lock()
		to = append(to, messages)
		mu.Unlock()
		_ = c.WriteMessage(websocket.TextMessage, []byte("{}"))
		for m := range messages {
			if c.WriteMessage(websocket.TextMessage, m) != nil {
				return
			}
		}
	}))
	addr := serve(b, app.Listener, func() {
		for _, messages := range to {
			close(messages)
		}
		_ = app.ShutdownWithTimeout(time.Second)
	})
	return "ws://" + addr + "/ws", func(list []v1.Line) {
		var text []byte
		for _, l := range list {
			text = append(append(text, l.Data...), '\n')
		}
		m := stream.Encode(stream.EventConsole, "", text, list[0].Time, 0)
		for _, messages := range to {
			messages <- m
		}
	}
}

type settings struct{ config v1.Config }

func (s settings) Current() v1.Config        { return s.config }
func (s settings) Reload() ([]string, error) { return nil, nil }
func (settings) Changed() <-chan struct{}    { return nil }

// berth is the real server and hub, with a store in memory. The hub
// writes lines to a journal before it publishes them.
func berth(b *testing.B) (url string, publish func([]v1.Line)) {
	db, err := store.Open("", store.Options{})
	require.NoError(b, err)
	b.Cleanup(func() { _ = db.Close() })
	require.NoError(b, db.Update(func(tx *store.Tx) error { return store.Containers.Create(tx, "mc", v1.ContainerSpec{}) }))
	config := v1.Defaults()
	config.Authorization.Token = token
	config.Complete()
	hub := stream.New(b.TempDir(), stream.Options{})
	s := server.New(server.Deps{Store: db, Settings: settings{config}, Hub: hub})
	addr := serve(b, s.Listen, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
		hub.Close()
	})
	return "ws://" + addr + "/ws/mc?tail=0", func(list []v1.Line) {
		if err := hub.Append("mc", v1.ServerConsole, list); err != nil {
			b.Error(err)
		}
	}
}
