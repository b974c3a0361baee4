package server

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"berth/api/server/edge"
	"berth/api/server/ws"
	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/store"
)

// consoles holds the handlers for consoles and resource usage.
type consoles struct {
	store     *store.Store
	hub       *stream.Hub
	sessions  sessions
	processes processes
}

type commandRequest struct {
	Command string `json:"command" api:"required"`
}

func (s consoles) command(c *call, r commandRequest) (acceptedBody, error) {
	o, err := c.findContainer(s.store)
	if err != nil {
		return acceptedBody{}, err
	}
	return acceptedBody{"Command sent", o.Meta.ID}, s.processes.Command(context.Background(), c.caller, o.Meta.ID, r.Command)
}

// logs returns the handler for the history of one console; role is empty for the
// install and the server console together.
func (s consoles) logs(role string) func(*call) error {
	return func(c *call) error {
		q, err := logsQueryOf(c, role)
		if err != nil {
			return err
		}
		o, err := c.findContainer(s.store)
		if err != nil {
			return err
		}
		return s.sendLogs(c, o, q)
	}
}

// logsQuery selects console lines: the last ones, or those behind a cursor.
type logsQuery struct {
	stream.HistoryQuery
	behind bool // the first Tail lines behind since
	since  stream.Cursor
}

// logsQueryOf returns the query of a request, or an error with all its faults.
func logsQueryOf(c *call, role string) (q logsQuery, err error) {
	q.Role = role
	if q.since, q.behind, err = lineQuery(c); err != nil {
		return q, err
	}
	tail := ws.DefaultTail
	if q.behind {
		tail = ws.MaxTail
	}
	if q.Tail, err = edge.QueryInt(c.Ctx, "tail", tail, ws.MaxTail); err != nil {
		return q, err
	}
	if q.Since, err = q.time(c, "since"); err != nil {
		return q, err
	}
	q.Before, err = q.time(c, "before")
	return q, err
}

// time returns the query parameter name, a time that selects lines.
func (q logsQuery) time(c *call, name string) (time.Time, error) {
	at, ok := parseTime(c.Query(name))
	switch {
	case !ok:
		return at, v1.Errorf(v1.InvalidRequest, "%s: must be a time (RFC 3339, or unix seconds)", name)
	case q.behind && !at.IsZero():
		return at, v1.Errorf(v1.InvalidRequest, "%s: cannot be combined with since_line", name)
	}
	return at, nil
}

// lineQuery returns the query parameter since_line, a cursor in a console. given
// reports whether it is present.
func lineQuery(c *call) (line stream.Cursor, given bool, err error) {
	text := c.Query("since_line")
	if text == "" {
		return line, false, nil
	}
	line, ok := stream.ParseCursor(text)
	if !ok {
		return line, false, v1.Errorf(v1.InvalidRequest, "since_line: must be the line of a message or of logs")
	}
	return line, true, nil
}

// parseTime parses a time in RFC 3339 or Unix seconds. The empty text is the zero time.
func parseTime(text string) (time.Time, bool) {
	if text == "" {
		return time.Time{}, true
	}
	// The query decoder turned an unescaped plus sign into a space.
	at, err := time.Parse(time.RFC3339Nano, strings.ReplaceAll(text, " ", "+"))
	if err == nil {
		return at, true
	}
	seconds, err := strconv.ParseInt(text, 10, 40)
	return time.Unix(seconds, 0), err == nil && seconds >= 0
}

func (s consoles) stats(c *call) (v1.Stats, error) {
	o, err := c.findContainer(s.store)
	if err != nil {
		return v1.Stats{}, err
	}
	return s.processes.Stats(context.Background(), o.Meta.ID)
}

// logsBody is an answer's body with console lines: of {"lines": [...], "line": ...}, or as they were
// printed. It reads the journal as fast as the client receives.
type logsBody struct {
	history *stream.History
	format  stream.Format
	cancel  context.CancelFunc
	ctx     context.Context // the body outlives its handler; Read has no context
	done    func()          // ends the session
	piece   []byte
	left    []byte // the unread part of piece

	begun, ended bool // of piece
}

// Read reads the next bytes of the body.
func (b *logsBody) Read(p []byte) (int, error) {
	for len(b.left) == 0 {
		if b.ended {
			return 0, io.EOF
		}
		if err := b.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// next reads the next piece.
func (b *logsBody) next() (err error) {
	b.piece = b.piece[:0]
	if !b.begun && b.format == stream.AsLines {
		b.piece = append(b.piece, `{"lines":[`...)
	}
	b.begun = true
	before := len(b.piece)
	if b.piece, err = b.history.Next(b.ctx, b.piece, b.format); err != nil {
		return err
	}
	if b.ended = len(b.piece) == before; b.ended && b.format == stream.AsLines {
		b.piece = b.appendEnd(b.piece)
	}
	b.left = b.piece
	return nil
}

func (b *logsBody) appendEnd(to []byte) []byte {
	to = fmt.Appendf(to, `],"line":%q`, b.history.Line())
	if text := b.history.Missing(); text != "" {
		to = fmt.Appendf(to, `,"missing":%q`, text)
	}
	return append(to, '}')
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
	body, err := s.openLogs(c, o, stream.AsLines, ws.HistoryTime, func(ctx context.Context) (*stream.History, error) {
		if q.behind {
			return s.hub.ReadOn(ctx, o.Meta.ID, q.Role, q.since, q.Tail)
		}
		return s.hub.ReadHistory(ctx, o.Meta.ID, q.HistoryQuery)
	})
	if err != nil {
		return err
	}
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
	body, err := s.openLogs(c, o, stream.AsPlain, contentTime, func(ctx context.Context) (*stream.History, error) {
		return s.hub.ReadAll(ctx, o.Meta.ID)
	})
	if err != nil {
		return err
	}
	edge.SendText(c.Ctx, body, o.Meta.ID+".log")
	return nil
}

// openLogs begins the session of an answer with console lines, and opens them.
func (s consoles) openLogs(c *call, o v1.Container, f stream.Format, limit time.Duration, open func(context.Context) (*stream.History, error)) (*logsBody, error) {
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
	return &logsBody{history: history, format: f, ctx: ctx, cancel: cancel, done: done}, nil
}
