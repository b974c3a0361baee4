package soak_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/fasthttp/websocket"
)

// holdConnections opens connections from three addresses, sends half a request
// on each, and keeps them until the daemon closes them.
func (h *hostileClient) holdConnections(ctx context.Context) {
	var held sync.WaitGroup
	for i := range 3000 {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%3))}, Timeout: time.Second}
		conn, err := dialer.DialContext(ctx, "tcp", h.Addr)
		if err != nil {
			h.refused.Add(1)
			break
		}
		h.requests.Add(1)
		_, _ = io.WriteString(conn, "POST /volumes HTTP/1.1\r\nHost: x\r\nX-Slow: ")
		held.Go(func() { holdUntilClosed(ctx, conn) })
	}
	held.Wait()
}

// holdUntilClosed reads until the daemon closes the connection or ctx ends.
func holdUntilClosed(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_, _ = io.Copy(io.Discard, conn)
}

// socket opens a socket of the container with a query, and with a token if there is one. It is nil if that was refused.
func (h *hostileClient) socket(ctx context.Context, query, token string) *websocket.Conn {
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	h.requests.Add(1)
	conn, _, err := websocket.DefaultDialer.DialContext(ctx, "ws://"+h.Addr+"/ws/evil"+query, header)
	if err != nil {
		h.refused.Add(1)
		return nil
	}
	return conn
}

// openSilentSockets opens sockets with a long history, and never reads from them.
func (h *hostileClient) openSilentSockets(ctx context.Context) {
	var open []*websocket.Conn
	for range 256 {
		conn := h.socket(ctx, "?tail=10000", h.Token)
		if conn == nil {
			break
		}
		open = append(open, conn)
	}
	sleep(ctx, 10*time.Second)
	for _, conn := range open {
		_ = conn.Close()
	}
}

// dripUploads sends chunked uploads, a byte at a time.
func (h *hostileClient) dripUploads(ctx context.Context) {
	parallel(10, func() {
		conn, err := net.Dial("tcp", h.Addr)
		if err != nil {
			return
		}
		defer conn.Close()
		h.requests.Add(1)
		_, err = fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
			"Accept: application/vnd.berthv1+json\r\nTransfer-Encoding: chunked\r\n\r\n", h.files("/files/content?path=drip"), h.Token)
		for err == nil && ctx.Err() == nil {
			_, err = io.WriteString(conn, "1\r\nx\r\n")
			sleep(ctx, 500*time.Millisecond)
		}
		h.refused.Add(1)
	})
}
