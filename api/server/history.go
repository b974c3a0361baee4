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

// The time that history may take: to be opened, and to be taken by its client.
const (
	historyWait = 10 * time.Second
	historyTime = 2 * time.Minute
)

// errHistory is the refusal of history that is not opened in time.
var errHistory = v1.Errorf(v1.Unavailable, "Too many clients read console history: try again")

// historyError turns an error of package stream into a refusal.
func historyError(err error) error {
	if errors.Is(err, stream.ErrBusy) {
		return errHistory
	}
	return err
}

// logsBody is the body of an answer with lines, read from the journal as the
// client takes it.
type logsBody struct {
	history *stream.History
	cancel  context.CancelFunc
	ctx     context.Context // of the answer, which outlives its handler
	done    func()          // ends its session
	piece   []byte
	left    []byte // of piece
	stage   int    // 0: nothing is read; 1: lines; 2: everything
}

// Read reads what is next of {"lines": [...]}.
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

// sendLogs answers with the last lines of a container.
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

// sendHistory sends a logs message in pieces, as frames of one message. An empty
// container is left out.
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

// sendPiece sends a part of a message, until the socket is stopped or ctx ends.
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

// errStopped ends a message that is being sent when its socket is stopped.
var errStopped = errors.New("socket is stopped")
