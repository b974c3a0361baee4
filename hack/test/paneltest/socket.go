package paneltest

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"
)

// Event is a message of a node to a browser.
type Event struct {
	Event string
	Args  []string
}

// Argument returns the first argument, or nothing.
func (e Event) Argument() string {
	if len(e.Args) == 0 {
		return ""
	}
	return e.Args[0]
}

// Socket is the socket of a browser.
type Socket struct {
	t    testing.TB
	conn *websocket.Conn
}

// Dial opens a socket of a server as a page of the panel at origin does. It returns nil and the status if
// it is refused.
func (n Node) Dial(t testing.TB, server, origin string) (*Socket, int) {
	t.Helper()
	header := http.Header{}
	if origin != "" {
		header.Set("Origin", origin)
	}
	conn, response, err := websocket.DefaultDialer.Dial(strings.Replace(n.URL, "http", "ws", 1)+"/api/servers/"+server+"/ws", header)
	if err != nil {
		require.NotNil(t, response, err)
		return nil, response.StatusCode
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &Socket{t: t, conn: conn}, response.StatusCode
}

// Close closes the socket as a page does that is left.
func (s *Socket) Close() {
	message := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = s.conn.WriteControl(websocket.CloseMessage, message, time.Now().Add(time.Second)) // the node may have closed it
	_ = s.conn.Close()
}

// Send sends an event.
func (s *Socket) Send(name string, args ...any) {
	s.t.Helper()
	require.NoError(s.t, s.conn.WriteJSON(map[string]any{"event": name, "args": args}))
}

// Next returns the next event but statistics.
func (s *Socket) Next() Event {
	s.t.Helper()
	for {
		var e Event
		require.NoError(s.t, s.conn.SetReadDeadline(time.Now().Add(3*time.Minute)))
		_, text, err := s.conn.ReadMessage()
		require.NoError(s.t, err)
		require.NoError(s.t, json.Unmarshal(text, &e))
		if e.Event != "stats" {
			return e
		}
	}
}

// Want requires that the next event has a name, and an argument that contains a text.
func (s *Socket) Want(name, part string) Event {
	s.t.Helper()
	e := s.Next()
	require.Equal(s.t, name, e.Event, e)
	require.Contains(s.t, e.Argument(), part)
	return e
}

// Until returns the events up to one with a name and an argument.
func (s *Socket) Until(name, argument string) (list []Event) {
	s.t.Helper()
	for {
		e := s.Next()
		if list = append(list, e); e.Event == name && e.Argument() == argument {
			return list
		}
	}
}

// Closed waits until the node has closed the socket. It returns the code of the close frame, 1006 if
// there was none, and the reason.
func (s *Socket) Closed() (code int, reason string) {
	s.t.Helper()
	for {
		require.NoError(s.t, s.conn.SetReadDeadline(time.Now().Add(3*time.Minute)))
		_, _, err := s.conn.ReadMessage()
		var closed *websocket.CloseError
		switch {
		case err == nil:
		case errors.As(err, &closed):
			return closed.Code, closed.Text
		default:
			return 1006, err.Error()
		}
	}
}
