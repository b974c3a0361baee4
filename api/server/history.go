package server

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/gofiber/fiber/v2"

	"berth/api/stream"
	v1 "berth/api/v1"
)

// Time limits of console history.
const (
	historyWait = 10 * time.Second // to open it
	historyTime = 2 * time.Minute  // for the client to receive it
)

// errHistory is the error for history that could not be opened within historyWait.
var errHistory = v1.Errorf(v1.Unavailable, "Too many clients read console history: try again")

// historyError returns the client's error for an error of package stream.
func historyError(err error) error {
	if errors.Is(err, stream.ErrBusy) {
		return errHistory
	}
	return err
}

// logsBody is an answer's body with console lines. It reads the journal as fast
// as the client receives.
type logsBody struct {
	history *stream.History
	cancel  context.CancelFunc
	ctx     context.Context // the body outlives its handler; Read has no context
	done    func()          // ends the session
	piece   []byte
	left    []byte // the unread part of piece
	stage   int    // 0: nothing was read; 1: reading lines; 2: complete
}

// Read reads the next bytes of {"lines": [...]}.
func (b *logsBody) Read(p []byte) (int, error) {
	for len(b.left) == 0 {
		if err := b.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

func (b *logsBody) fill() (err error) {
	b.piece = b.piece[:0]
	switch b.stage {
	case 0:
		b.piece = append(b.piece, `{"lines":[`...)
		b.stage = 1
	case 1:
		if b.piece, err = b.history.NextLines(b.ctx, b.piece); err != nil {
			return err
		}
		if len(b.piece) == 0 {
			b.piece = append(b.piece, `]}`...)
			b.stage = 2
		}
	default:
		return io.EOF
	}
	b.left = b.piece
	return nil
}

// Close ends the history and its session.
func (b *logsBody) Close() error {
	b.cancel()
	b.history.Close()
	b.done()
	return nil
}

// sendLogs answers with the last lines of a container's console.
func (s consoles) sendLogs(c *fiber.Ctx, o v1.Container, role string, tail int, since time.Time) error {
	done, err := beginDownload(s.Server, c, onContainer(o.Meta))
	if err != nil {
		return err
	}
	waiting, stop := withClient(c)
	defer stop()
	waiting, stopWaiting := context.WithTimeout(waiting, historyWait)
	defer stopWaiting()
	history, err := s.hub.ReadHistory(waiting, o.Meta.ID, role, tail, since)
	if err != nil {
		done()
		return historyError(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), historyTime)
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	c.Context().SetBodyStream(&logsBody{history: history, ctx: ctx, cancel: cancel, done: done}, -1)
	return nil
}

// sendHistory sends console history as one logs message of several frames. The
// message names the container unless it is empty. sendHistory closes x.
func (k *socket) sendHistory(ctx context.Context, container string, x *stream.History) error {
	defer x.Close()
	ctx, cancel := context.WithTimeout(ctx, historyTime)
	defer cancel()
	w, err := k.ws.NextWriter(websocket.TextMessage)
	if err != nil {
		return err
	}
	piece := stream.AppendStart(nil, stream.EventLogs, container)
	for len(piece) > 0 {
		if err := k.sendPiece(ctx, w, piece); err != nil {
			return err
		}
		if piece, err = x.NextText(ctx, piece[:0]); err != nil {
			return historyError(err)
		}
	}
	if err := k.sendPiece(ctx, w, stream.AppendEnd(nil, time.Now())); err != nil {
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
