package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/fasthttp/websocket"

	v1 "berth/api/v1"
)

// maxSilence is how long a daemon may send nothing before a stream counts as broken.
// The daemon pings more often.
const maxSilence = 90 * time.Second

// The events of messages, beside v1.EventState and v1.EventMessage.
const (
	EventConsole = "console" // Data is output of the container
	EventLogs    = "logs"    // Data is earlier output of the container
	EventStats   = "stats"   // see Message.Stats
	EventGap     = "gap"     // transitions before the seq in Data are not stored, or Epoch is a new one
)

// Transition is v1.Event. Message embeds it under this name, because Event is one of its fields.
type Transition = v1.Event

// Message is one message of a Stream. A transition that is not stored has no Seq, and only a
// stream of the whole node names the container.
type Message struct {
	Transition

	// Line is how far this stream has read the console of the container, for
	// LogOptions.SinceLine and OpenOptions.SinceLine. It is empty in messages that are
	// not about the console.
	Line      string      `json:"line"`
	SinceLine string      `json:"since_line"` // of v1.EventMessage: the lines from here to Line are missing
	Times     []time.Time `json:"times"`      // of each line in Data: of EventLogs, and of EventConsole with several lines

	JSON []byte `json:"-"` // the message as it was received
}

// Stats returns the resource usage in a message whose event is EventStats.
func (m Message) Stats() (s v1.Stats, err error) {
	err = json.Unmarshal(m.JSON, &s)
	return s, err
}

// Cursor names a stored transition. Zero is before the first one.
type Cursor struct {
	Seq   uint64
	Epoch string // of Seq; empty: the daemon's current one
}

func (c Cursor) query() []string {
	return []string{"since", strconv.FormatUint(c.Seq, 10), "epoch", c.Epoch}
}

// Stream is one WebSocket to the daemon. Next and Send may be called concurrently
// with each other; each of them is for one goroutine.
type Stream struct {
	conn *websocket.Conn
	stop func() bool // stops watching the context of the opener
}

// Open opens a stream of the whole node: all transitions after a cursor, the state
// of each container, then everything that happens. It is closed when ctx ends.
func (s Events) Open(ctx context.Context, after Cursor) (*Stream, error) {
	return s.c.open(ctx, "/ws"+query(after.query()...))
}

// OpenOptions are options of Containers.Open.
type OpenOptions struct {
	Tail int // the number of past console lines, 0 to 10000

	// SinceLine, if not empty, is the Line of a Message or of Logs: the stream begins
	// with the lines behind it, instead of the last ones.
	SinceLine string

	// Size, if not nil, returns the size of the terminal that the container's terminal gets.
	Size func() (columns, rows int)
}

// Open opens a stream of one container: its state, console lines as o selects, then
// everything that happens. It is closed when ctx ends.
func (s Containers) Open(ctx context.Context, id string, o OpenOptions) (*Stream, error) {
	stream, err := s.c.open(ctx, "/ws/"+url.PathEscape(id)+query("tail", strconv.Itoa(o.Tail), "since_line", o.SinceLine))
	if err != nil || o.Size == nil {
		return stream, err
	}
	if columns, rows := o.Size(); columns > 0 && rows > 0 {
		err = stream.Send(Command{Event: "resize", Data: fmt.Sprintf("%dx%d", columns, rows)})
	}
	return stream, err
}

func (c *Client) open(ctx context.Context, path string) (*Stream, error) {
	address := *c.base
	address.Scheme = map[string]string{"http": "ws", "https": "wss"}[c.base.Scheme]
	dialer := websocket.Dialer{TLSClientConfig: c.options.TLS, HandshakeTimeout: c.options.Timeout, Proxy: http.ProxyFromEnvironment}
	conn, response, err := dialer.DialContext(ctx, address.String()+path, c.Header())
	if err != nil && response != nil {
		defer response.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(response.Body, maxBody)) // the status matters more than a complete message
		return nil, errorOf(response, text)
	}
	if err != nil {
		return nil, err
	}
	s := &Stream{conn: conn, stop: context.AfterFunc(ctx, func() { _ = conn.Close() })}
	pong := conn.PingHandler()
	conn.SetPingHandler(func(data string) error {
		_ = s.extend() // the next read returns the error
		return pong(data)
	})
	return s, nil
}

func (s *Stream) extend() error { return s.conn.SetReadDeadline(time.Now().Add(maxSilence)) }

// Next waits for the next message. If the daemon has closed the stream, the error is
// a *CloseError.
func (s *Stream) Next() (m Message, err error) {
	if err := s.extend(); err != nil {
		return m, err
	}
	_, text, err := s.conn.ReadMessage()
	var closed *websocket.CloseError
	if errors.As(err, &closed) && closed.Code != websocket.CloseAbnormalClosure {
		return m, &CloseError{closed.Code, closed.Text}
	}
	if err != nil {
		return m, fmt.Errorf("the stream broke off: %w", err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%w: %w", ErrNotBerth, err)
	}
	m.JSON = text
	return m, nil
}

// Command is a message to the daemon.
type Command struct {
	Event     string `json:"event"` // send_command, power, request_logs, request_stats or resize
	Container string `json:"container,omitempty"`
	Data      string `json:"data,omitempty"`
}

// Send sends a command. Its failure is reported in a daemon_message.
func (s *Stream) Send(c Command) error { return s.conn.WriteJSON(c) }

// Close closes the stream and the connection.
func (s *Stream) Close() error {
	s.stop()
	return s.conn.Close()
}

// CloseError is returned for a stream that the daemon has closed.
type CloseError struct {
	Code   int // of the WebSocket protocol
	Reason string
}

// Error returns the reason.
func (e *CloseError) Error() string {
	if e.Deleted() {
		return "the container is deleted"
	}
	return "the daemon closed the stream: " + e.Reason
}

// Deleted reports whether the stream ended because its container is deleted.
func (e *CloseError) Deleted() bool { return e.Code == websocket.CloseNormalClosure }

// Permanent reports whether a new stream would be refused, because the container is
// deleted or the token is not valid any more.
func (e *CloseError) Permanent() bool { return e.Deleted() || e.Code == websocket.ClosePolicyViolation }

// Follow delivers earlier lines of a container's console, as options select them, and
// then its output, states, statistics and messages, until ctx ends or the container is
// deleted. It reconnects when the connection breaks, and continues behind the last
// line that it has delivered, so that each is delivered once. A message with SinceLine
// means that lines are missing.
//
// The last element is an error, unless the caller ends the loop. It is ctx.Err() if
// ctx ended, and a *CloseError if the container is deleted.
func (s Containers) Follow(ctx context.Context, id string, options OpenOptions) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		from := options // of the next stream
		s.c.resume(ctx, func() (*Stream, error) { return s.Open(ctx, id, from) }, func(m Message, err error) bool {
			if m.Line != "" {
				from.SinceLine = m.Line
			}
			return yield(m, err)
		})
	}
}

// resume opens streams and delivers their messages until ctx ends, an error is permanent, or deliver
// returns false. The error is delivered last.
func (c *Client) resume(ctx context.Context, open func() (*Stream, error), deliver func(Message, error) (more bool)) {
	for {
		more, err := once(open, deliver)
		if !more {
			return
		}
		if ctx.Err() != nil {
			deliver(Message{}, ctx.Err())
			return
		}
		if c.options.Retry < 0 || isPermanent(err) {
			deliver(Message{}, err)
			return
		}
		if c.options.OnRetry != nil {
			c.options.OnRetry(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(c.options.Retry/2 + rand.N(c.options.Retry)): // so that clients do not all return at once
		}
	}
}

// once delivers the messages of one stream. more reports whether another one is wanted.
func once(open func() (*Stream, error), deliver func(Message, error) (more bool)) (more bool, err error) {
	stream, err := open()
	if err != nil {
		return true, err
	}
	defer func() { _ = stream.Close() }()
	for {
		m, err := stream.Next()
		if err != nil {
			return true, err
		}
		if !deliver(m, nil) {
			return false, nil
		}
	}
}

// isPermanent reports whether another attempt would fail in the same way.
func isPermanent(err error) bool {
	var closed *CloseError
	if errors.As(err, &closed) {
		return closed.Permanent()
	}
	if errors.Is(err, ErrNotBerth) {
		return true
	}
	switch status := StatusOf(err); status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	default:
		return status/100 == 4
	}
}
