package berthtest

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"berth/api/client"
	"berth/hack/test/openapitest"
)

// Message is one message of a socket.
type Message struct {
	client.Message
	Read time.Time `json:"-"` // when the test received it
	Raw  string    `json:"-"`
}

// Socket is a WebSocket that records its messages.
type Socket struct {
	conn *websocket.Conn

	mu     sync.Mutex
	all    []Message
	change chan struct{} // closed at the next message
	ended  chan struct{} // closed at the end of the connection
	code   int           // of the close frame; 0: there was none; set at the end
}

// Listen opens a socket, such as "/ws" or "/ws/mc?tail=0". It is closed when the test ends.
// Its messages are compared with the OpenAPI document then.
func (b *Berth) Listen(t testing.TB, path string) *Socket {
	t.Helper()
	s, response, err := b.Dial(path, http.Header{"Authorization": {"Bearer " + b.Token}})
	if err != nil {
		status := 0
		if response != nil {
			status = response.StatusCode
		}
		t.Fatalf("socket %s: %v (status %d)", path, err, status)
	}
	t.Cleanup(func() {
		s.Close()
		s.check(t)
	})
	return s
}

// checked is how many messages of each event are compared with the OpenAPI document.
const checked = 200

// check compares the messages with the OpenAPI document.
func (s *Socket) check(t testing.TB) {
	count := map[string]int{}
	for _, m := range s.Messages() {
		if count[m.Event]++; count[m.Event] <= checked {
			openapitest.CheckValue(t, "SocketMessage", []byte(m.Raw))
		}
	}
}

// Dial opens a socket with these headers.
func (b *Berth) Dial(path string, header http.Header) (*Socket, *http.Response, error) {
	conn, response, err := websocket.DefaultDialer.Dial("ws://"+b.Addr+path, header)
	if err != nil {
		return nil, response, err
	}
	s := &Socket{conn: conn, change: make(chan struct{}), ended: make(chan struct{})}
	go s.read()
	return s, response, nil
}

func (s *Socket) read() {
	defer close(s.ended)
	for {
		_, raw, err := s.conn.ReadMessage()
		if err != nil {
			var closed *websocket.CloseError
			if errors.As(err, &closed) && closed.Code != websocket.CloseAbnormalClosure {
				s.code = closed.Code
			}
			return
		}
		m := Message{Read: time.Now(), Raw: string(raw)}
		if err := json.Unmarshal(raw, &m); err != nil {
			m.Event = "invalid JSON: " + err.Error()
		}
		s.mu.Lock()
		s.all = append(s.all, m)
		close(s.change)
		s.change = make(chan struct{})
		s.mu.Unlock()
	}
}

// Close closes the socket and waits for its reader.
func (s *Socket) Close() {
	_ = s.conn.Close()
	<-s.ended
}

// Send sends one message.
func (s *Socket) Send(t testing.TB, text string) {
	t.Helper()
	if err := s.conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		t.Fatalf("socket: %v", err)
	}
}

// Messages returns the messages so far.
func (s *Socket) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// Await waits until the messages so far fulfil a condition.
func (s *Socket) Await(t testing.TB, what string, done func([]Message) bool) {
	t.Helper()
	late := time.NewTimer(3 * time.Minute)
	defer late.Stop()
	for {
		s.mu.Lock()
		all, change := s.all, s.change
		s.mu.Unlock()
		if done(all) {
			return
		}
		select {
		case <-change:
		case <-s.ended:
			if !done(s.Messages()) {
				t.Fatalf("socket: closed before: %s", what)
			}
			return
		case <-late.C:
			t.Fatalf("socket: timed out: %s; received\n%s", what, tail(s.text()))
		}
	}
}

// Next waits for the first message from index from on that fulfils a condition. It
// returns the message and the index after it.
func (s *Socket) Next(t testing.TB, from int, what string, want func(Message) bool) (m Message, next int) {
	t.Helper()
	s.Await(t, what, func(all []Message) bool {
		at := slices.IndexFunc(all[min(from, len(all)):], want)
		if at >= 0 {
			m, next = all[from+at], from+at+1
		}
		return at >= 0
	})
	return m, next
}

// Event waits for a state event of a container, from index from on.
func (s *Socket) Event(t testing.TB, from int, container, state string) (Message, int) {
	t.Helper()
	return s.Next(t, from, container+" "+state, func(m Message) bool {
		return m.Event == "event" && m.Data == state && (m.Container == container || m.Container == "")
	})
}

// States returns the state events of a container so far, in order.
func (s *Socket) States(container string) (states []string) {
	for _, m := range s.Messages() {
		if m.Event == "event" && m.Container == container {
			states = append(states, m.Data)
		}
	}
	return states
}

// Ended waits until the daemon has closed the socket. It returns the code of the close
// frame; 0 if there was none.
func (s *Socket) Ended(t testing.TB) (code int) {
	t.Helper()
	late := time.NewTimer(3 * time.Minute)
	defer late.Stop()
	select {
	case <-s.ended:
	case <-late.C:
		t.Fatal("the socket is still open")
	}
	return s.code
}

func (s *Socket) text() string {
	var b strings.Builder
	for _, m := range s.Messages() {
		if m.Event != "stats" {
			b.WriteString(m.Raw + "\n")
		}
	}
	return b.String()
}
