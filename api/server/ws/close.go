package ws

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/fasthttp/websocket"

	"berth/api/auth"
	"berth/api/stream"
	v1 "berth/api/v1"
)

// stop ends the socket with a close frame. Only the first call has an effect.
func (k *socket) stop(code int, reason string) {
	k.stopOnce.Do(func() {
		k.code, k.reason = code, reason
		close(k.ended)
		k.abort = time.AfterFunc(stopTimeout, func() { k.hangUp(false) })
	})
}

// stopFor stops the socket with the close code and reason for an error. A nil
// error and a broken connection have no reason.
func (k *socket) stopFor(err error) {
	var refusal *v1.Error
	switch {
	case errors.Is(err, auth.ErrExpired):
		k.stop(websocket.ClosePolicyViolation, "token has expired")
	case errors.Is(err, auth.ErrUnauthorized):
		k.stop(websocket.ClosePolicyViolation, "token is revoked")
	case errors.Is(err, auth.ErrGone), errors.Is(err, stream.ErrGone):
		k.stop(websocket.CloseNormalClosure, "container is deleted")
	case errors.Is(err, auth.ErrShutdown), errors.Is(err, stream.ErrClosed):
		k.stop(websocket.CloseGoingAway, "shutting down")
	case errors.Is(err, stream.ErrSlow):
		k.stop(websocket.CloseTryAgainLater, "too slow for state events; resume with since")
	case errors.Is(err, stream.ErrFull):
		k.stop(websocket.CloseTryAgainLater, "container or node has too many open sockets: close some")
	case errors.As(err, &refusal):
		k.stop(websocket.CloseTryAgainLater, refusal.Message)
	case errors.Is(err, errInternal):
		k.log.Error("WebSocket failed", slog.Any("err", err))
		k.stop(websocket.CloseInternalServerErr, "internal error")
	}
	k.stop(websocket.CloseNormalClosure, "")
}

// errInternal is an error that is not the client's.
var errInternal = errors.New("could not serve a WebSocket")

// sendClose sends the close frame, on a best-effort basis.
func (k *socket) sendClose() {
	frame := websocket.FormatCloseMessage(k.code, k.reason)
	_ = k.ws.WriteControl(websocket.CloseMessage, frame, time.Now().Add(closeTimeout))
}

// hangUp closes the connection. If gently is set it lingers, so that the close
// frame arrives.
func (k *socket) hangUp(gently bool) {
	if own, can := k.conn.(interface{ SetLinger(bool) }); can {
		own.SetLinger(gently)
	}
	_ = k.conn.Close()
}

// below returns the connection below that of a hijacked request, whose own Close does nothing until
// the handler returns. From then on fasthttp uses the hijacked one for another client.
func below(ws *websocket.Conn) net.Conn {
	c := ws.NetConn()
	if hijacked, is := c.(interface{ UnsafeConn() net.Conn }); is {
		return hijacked.UnsafeConn()
	}
	return c
}

// keepLittle bounds the kernel's send buffer, so that a slow client is noticed early.
func (k *socket) keepLittle() {
	if c, can := k.conn.(interface{ SetWriteBuffer(int) error }); can {
		_ = c.SetWriteBuffer(sendBuffer) // on failure the larger default does no harm
	}
}

// end stops the socket for the end of its session.
func (k *socket) end(reason error) { k.stopFor(fmt.Errorf("%w: %w", errInternal, reason)) }
