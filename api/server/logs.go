package server

import (
	"context"
	"io"
	"time"

	"github.com/gofiber/fiber/v2"

	"berth/api/server/edge"
	"berth/api/server/ws"
	"berth/api/stream"
	v1 "berth/api/v1"
)

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
	done, err := s.sessions.beginDownload(c, onContainer(o.Meta))
	if err != nil {
		return err
	}
	waiting, stop := edge.Context(c)
	defer stop()
	waiting, stopWaiting := context.WithTimeout(waiting, ws.HistoryWait)
	defer stopWaiting()
	history, err := s.hub.ReadHistory(waiting, o.Meta.ID, role, tail, since)
	if err != nil {
		done()
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), ws.HistoryTime)
	edge.SendStream(c, &logsBody{history: history, ctx: ctx, cancel: cancel, done: done})
	return nil
}
