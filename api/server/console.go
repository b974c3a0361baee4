package server

import (
	"context"
	"strconv"
	"strings"
	"time"

	"berth/api/limit"
	"berth/api/server/edge"
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
	history   *limit.Slots // see limit.Histories
}

type commandRequest struct {
	Command string `json:"command" api:"required"`
}

func (s consoles) command(c *call, r commandRequest) (acceptedBody, error) {
	o, err := c.findContainer(s.store)
	if err != nil {
		return acceptedBody{}, err
	}
	return acceptedBody{"Command sent", o.Meta.ID}, s.processes.command(context.Background(), c.caller, o.Meta.ID, r.Command,
		c.checkIn(s.store))
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
		leave, err := c.enter(s.store, o.Meta.ID, s.history)
		if err != nil {
			return err
		}
		defer leave()
		x, err := s.read(o.Meta.ID, q)
		if err != nil {
			return err
		}
		logs := v1.Logs{Lines: []v1.LogLine{}, Line: x.Line.String(), Missing: x.Missing}
		for _, l := range x.Lines {
			logs.Lines = append(logs.Lines, v1.LogLine{Time: l.Time, Data: string(l.Data)})
		}
		return c.answer(logs, nil) // in the permit: the lines and their JSON are large
	}
}

// read returns the lines that a query selects.
func (s consoles) read(id string, q logsQuery) (stream.History, error) {
	if q.behind {
		return s.hub.ReadOn(id, q.Role, q.since, q.Tail)
	}
	return s.hub.ReadHistory(id, q.HistoryQuery)
}

// logsQuery selects console lines: the last ones, or those behind a cursor.
type logsQuery struct {
	stream.HistoryQuery
	behind bool // the first Tail lines behind since
	since  stream.Cursor
}

// logsQueryOf returns the query of a request, or an error with all its field errors.
func logsQueryOf(c *call, role string) (q logsQuery, err error) {
	q.Role = role
	if q.since, q.behind, err = lineQuery(c); err != nil {
		return q, err
	}
	tail := defaultTail
	if q.behind {
		tail = maxTail
	}
	if q.Tail, err = edge.QueryInt(c.Ctx, "tail", tail, maxTail); err != nil {
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
	ctx, end := edge.Context(c.Ctx)
	defer end()
	return s.processes.stats(ctx, o.Meta.ID)
}

// content answers with all lines of a container that are kept.
func (s consoles) content(c *call) error {
	o, err := c.findContainer(s.store)
	if err != nil {
		return err
	}
	done, err := s.sessions.beginDownload(c, onContainer(o.Meta))
	if err != nil {
		return err
	}
	ctx, end := c.bounded(historyWait)
	defer end()
	content, err := s.hub.ReadAll(ctx, o.Meta.ID)
	if err != nil {
		done()
		return err
	}
	edge.SendText(c.Ctx, content, o.Meta.ID+".log", func() { content.Close(); done() })
	return nil
}
