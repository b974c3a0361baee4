package soak_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/fasthttp/websocket"
	"golang.org/x/crypto/ssh"
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

// floodLogins opens connections of SFTP from sixteen addresses: some send nothing, the others try passwords.
func (h *hostileClient) floodLogins(ctx context.Context) {
	var all sync.WaitGroup
	for i := range 320 {
		all.Go(func() {
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%16))}, Timeout: time.Second}
			conn, err := dialer.DialContext(ctx, "tcp", h.SFTP)
			if err != nil {
				h.refused.Add(1)
				return
			}
			h.requests.Add(1)
			if i%2 == 0 {
				holdUntilClosed(ctx, conn)
				return
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			_, _, _, err = ssh.NewClientConn(conn, h.SFTP, &ssh.ClientConfig{
				User: h.Volume, Auth: []ssh.AuthMethod{ssh.Password("wrong")}, HostKeyCallback: ssh.InsecureIgnoreHostKey()})
			if err != nil {
				h.refused.Add(1)
			}
		})
	}
	all.Wait()
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

// resizeTerminal changes the size of the terminal as fast as it can.
func (h *hostileClient) resizeTerminal(ctx context.Context) {
	parallel(10, func() {
		conn := h.socket(ctx, "?tail=0", h.Token)
		if conn == nil {
			return
		}
		defer conn.Close()
		for i := range 1000 {
			message := fmt.Sprintf(`{"event":"resize","data":"%dx40"}`, 80+i%100)
			if ctx.Err() != nil || conn.WriteMessage(websocket.TextMessage, []byte(message)) != nil {
				return
			}
			h.requests.Add(1)
		}
	})
}

// dripBodies reserves memory for the largest bodies, and sends them slowly.
func (h *hostileClient) dripBodies(ctx context.Context) {
	parallel(8, func() {
		conn, err := net.Dial("tcp", h.Addr)
		if err != nil {
			return
		}
		defer conn.Close()
		h.requests.Add(1)
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
			"Accept: application/vnd.berthv1+json\r\nContent-Length: %d\r\n\r\n", h.files("/files"), h.Token, 8<<20)
		for err == nil && ctx.Err() == nil {
			_, err = io.WriteString(conn, strings.Repeat(" ", 16<<10))
			sleep(ctx, 500*time.Millisecond)
		}
		h.refused.Add(1)
	})
}
