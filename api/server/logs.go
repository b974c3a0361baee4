package server

import (
	"context"
	"fmt"
	"io"
	"time"

	"berth/api/server/edge"
	"berth/api/server/ws"
	"berth/api/stream"
	v1 "berth/api/v1"
)

// logsBody is an answer's body with console lines. It reads the journal as fast
// as the client receives.
type logsBody struct {
	history *stream.History
	fill    func(b *logsBody) error // makes piece the next bytes, or returns io.EOF
	cancel  context.CancelFunc
	ctx     context.Context // the body outlives its handler; Read has no context
	done    func()          // ends the session
	piece   []byte
	left    []byte // the unread part of piece
	stage   int    // of fillLines. 0: nothing was read; 1: reading lines; 2: complete
}

// Read reads the next bytes of the body.
func (b *logsBody) Read(p []byte) (int, error) {
	for len(b.left) == 0 {
		b.piece = b.piece[:0]
		if err := b.fill(b); err != nil {
			return 0, err
		}
		b.left = b.piece
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// fillLines reads {"lines": [...], "line": ...}.
func fillLines(b *logsBody) (err error) {
	switch b.stage {
	case 0:
		b.piece = append(b.piece, `{"lines":[`...)
		b.stage = 1
	case 1:
		if b.piece, err = b.history.NextLines(b.ctx, b.piece); err != nil {
			return err
		}
		if len(b.piece) == 0 {
			b.piece = b.appendEnd(b.piece)
			b.stage = 2
		}
	default:
		return io.EOF
	}
	return nil
}

func (b *logsBody) appendEnd(to []byte) []byte {
	to = fmt.Appendf(to, `],"line":%q`, b.history.Line())
	if text := b.history.Missing(); text != "" {
		to = fmt.Appendf(to, `,"missing":%q`, text)
	}
	return append(to, '}')
}

// fillPlain reads the lines as they were printed.
func fillPlain(b *logsBody) (err error) {
	if b.piece, err = b.history.NextPlain(b.ctx, b.piece); err == nil && len(b.piece) == 0 {
		err = io.EOF
	}
	return err
}

// Close ends the history and its session.
func (b *logsBody) Close() error {
	b.cancel()
	b.history.Close()
	b.done()
	return nil
}

// sendLogs answers with lines of a container's console.
func (s consoles) sendLogs(c *call, o v1.Container, q logsQuery) error {
	body, err := s.openLogs(c, o, ws.HistoryTime, func(ctx context.Context) (*stream.History, error) {
		if q.behind {
			return s.hub.ReadOn(ctx, o.Meta.ID, q.Role, q.since, q.Tail)
		}
		return s.hub.ReadHistory(ctx, o.Meta.ID, q.HistoryQuery)
	})
	if err != nil {
		return err
	}
	body.fill = fillLines
	edge.SendStream(c.Ctx, body)
	return nil
}

// contentTime bounds the download of a console.
const contentTime = time.Hour

// content answers with all lines of a container that are kept.
func (s consoles) content(c *call) error {
	o, err := c.findContainer(s.store)
	if err != nil {
		return err
	}
	body, err := s.openLogs(c, o, contentTime, func(ctx context.Context) (*stream.History, error) {
		return s.hub.ReadAll(ctx, o.Meta.ID)
	})
	if err != nil {
		return err
	}
	body.fill = fillPlain
	edge.SendText(c.Ctx, body, o.Meta.ID+".log")
	return nil
}

// openLogs begins the session of an answer with console lines, and opens them.
func (s consoles) openLogs(c *call, o v1.Container, limit time.Duration, open func(context.Context) (*stream.History, error)) (*logsBody, error) {
	done, err := s.sessions.beginDownload(c, onContainer(o.Meta))
	if err != nil {
		return nil, err
	}
	waiting, stop := edge.Context(c.Ctx)
	defer stop()
	waiting, stopWaiting := context.WithTimeout(waiting, ws.HistoryWait)
	defer stopWaiting()
	history, err := open(waiting)
	if err != nil {
		done()
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	return &logsBody{history: history, ctx: ctx, cancel: cancel, done: done}, nil
}
