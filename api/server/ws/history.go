package ws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fasthttp/websocket"

	"berth/api/stream"
)

// Limits on console history.
const (
	DefaultTail = 150              // console lines, if the client names no number
	MaxTail     = 10_000           // console lines
	HistoryWait = 10 * time.Second // to open it
	HistoryTime = 2 * time.Minute  // for the client to receive it
)

// sendHistory sends console history as one logs message of several frames. The
// message names the container unless it is empty. sendHistory closes x.
func (k *socket) sendHistory(ctx context.Context, container string, x *stream.History) error {
	defer x.Close()
	ctx, cancel := context.WithTimeout(ctx, HistoryTime)
	defer cancel()
	w, err := k.ws.NextWriter(websocket.TextMessage)
	if err != nil {
		return err
	}
	for piece := stream.AppendStart(nil, container); len(piece) > 0; {
		if err := k.sendPiece(ctx, w, piece); err != nil {
			return err
		}
		if piece, err = x.NextText(ctx, piece[:0]); err != nil {
			return err
		}
	}
	for piece := []byte(`","times":[`); len(piece) > 0; piece = x.NextTimes(piece[:0]) {
		if err := k.sendPiece(ctx, w, piece); err != nil {
			return err
		}
	}
	at := time.Now().UTC().Format(time.RFC3339Nano)
	if err := k.sendPiece(ctx, w, fmt.Appendf(nil, `],"time":%q,"line":%q}`, at, x.Line())); err != nil {
		return err
	}
	return w.Close()
}

// sendPiece sends a part of a message, unless the socket is stopped or ctx has ended.
func (k *socket) sendPiece(ctx context.Context, w io.Writer, piece []byte) error {
	select {
	case <-k.ended:
		return errStopped
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := k.ws.SetWriteDeadline(time.Now().Add(socketWrite)); err != nil {
		return err
	}
	_, err := w.Write(piece)
	return err
}

// errStopped ends a message that is being sent when its socket stops.
var errStopped = errors.New("socket is stopped")
